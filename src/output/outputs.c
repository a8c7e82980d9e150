// SPDX-License-Identifier: Apache-2.0
#include "output/outputs.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "model/profile_merge.h"
#include "output/output.h"
#include "output/output_pattern.h"
#include "output/report_file.h"
#include "show/text_formats.h"

#define REPORT_BYTES_MAX ((size_t)4 << 30)
#define MAX_KEPT (1u << 24)
#define TIME_BYTES 32

struct kept_output {
	char *path;
	const struct output *output;
	dev_t device; /* of the file that we created: another one may have replaced it */
	ino_t inode;
};

void outputs_done(struct outputs *outputs)
{
	for (uint32_t i = 0; i < outputs->nr; i++)
		free(outputs->list[i].path);
	for (uint32_t i = 0; i < outputs->nr_kept; i++)
		free(outputs->kept[i].path);
	free(outputs->kept);
}

static bool is_stdout(const struct output *output)
{
	return !strcmp(output->path, "-");
}

/* Can a reader of stdout tell several reports in this format apart? */
static bool has_many_reports(enum export_format format)
{
	return format == EXPORT_TEXT || format == EXPORT_FOLDED || format == EXPORT_JSONL;
}

static int check_windows(const struct outputs *outputs, const struct output *output, struct diag *diag)
{
	const struct output_words first = { .number = 1, .time = "19700101T000000Z" };
	char path[PATH_MAX];
	int err;

	if (is_stdout(output))
		return has_many_reports(output->format)
			   ? 0
			   : diag_errno(
				 diag, EINVAL,
				 "report after report on standard output is for text, folded and jsonl: give %s a file with -o FILE-%%n",
				 export_format_name(output->format));
	err = output_pattern_check(output->path, diag);
	for (uint32_t i = 0; !err && i < outputs->nr; i++) {
		const char *other = outputs->list[i].path;

		if (!is_stdout(&outputs->list[i]) && output_pattern_meet(output->path, other))
			return diag_errno(diag, EINVAL, "'%.200s' and '%.200s' may name the same file: let them begin or end differently",
					  other, output->path);
	}
	if (err)
		return err;
	err = output_pattern_path(output->path, &first, path);
	return err ? diag_errno(diag, -err, "cannot write %.200s: %s", output->path, strerror(-err)) : output_check(path, diag);
}

/* --- adding --------------------------------------------------------------------------------------------------------------------------- */

int outputs_add(struct outputs *outputs, const char *path, const char *format, struct diag *diag)
{
	struct output *output = &outputs->list[outputs->nr];
	int err;

	if (outputs->nr == OUTPUTS_MAX)
		return diag_errno(diag, EINVAL, "at most %d outputs", OUTPUTS_MAX);
	err = format ? export_format_by_name(format, diag, &output->format) : export_format_by_path(path, diag, &output->format);
	if (err)
		return err;
	output->path = strdup(path);
	if (!output->path)
		return -ENOMEM;
	err = outputs->has_windows ? check_windows(outputs, output, diag) : output_check(path, diag);
	if (err)
		free(MOVE(output->path));
	else
		outputs->nr++;
	return err;
}

bool outputs_want_lines(const struct outputs *outputs)
{
	for (uint32_t i = 0; i < outputs->nr; i++) {
		if (export_format_has_lines(outputs->list[i].format))
			return true;
	}
	return outputs->receiver.take && export_format_has_lines(outputs->receiver.format);
}

bool outputs_have_stdout(const struct outputs *outputs)
{
	for (uint32_t i = 0; i < outputs->nr; i++) {
		if (is_stdout(&outputs->list[i]))
			return true;
	}
	return false;
}

/* --- writing -------------------------------------------------------------------------------------------------------------------------- */

/* Writes a line with the time before a text report, and an empty line between folded ones. JSON lines need none: they mark where a profile
 * begins. */
static int write_heading(enum export_format format, const struct profile *profile, const struct output_window *window, struct diag *diag)
{
	time_t seconds = (time_t)(window->start_unix_ns / NS_PER_S);
	struct tm tm;
	char text[TIME_BYTES] = "\n";
	int err;

	if (format == EXPORT_JSONL || (format == EXPORT_FOLDED && window->number == 1))
		return 0;
	if (format == EXPORT_TEXT && text_is_outstanding(profile)) /* has the time itself */
		return 0;
	if (format == EXPORT_TEXT && localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "[%H:%M:%S]\n", &tm);
	err = file_write(STDOUT_FILENO, text, strlen(text));
	return err ? diag_errno(diag, -err, "cannot write standard output: %s", strerror(-err)) : 0;
}

static int keep(struct outputs *outputs, const struct output *output, const char *path)
{
	struct kept_output kept;
	struct stat status;

	if (lstat(path, &status) || !S_ISREG(status.st_mode)) /* a FIFO or a link is not our file, and stays */
		return 0;
	kept = (struct kept_output){ .path = strdup(path), .output = output, .device = status.st_dev, .inode = status.st_ino };
	if (!kept.path || !array_grow(&outputs->kept, outputs->nr_kept, &outputs->max_kept, sizeof(kept), 16, MAX_KEPT)) {
		free(kept.path);
		return -ENOMEM;
	}
	outputs->kept[outputs->nr_kept++] = kept;
	return 0;
}

static void remove_kept(const struct kept_output *kept)
{
	struct stat status;

	if (!lstat(kept->path, &status) && status.st_dev == kept->device && status.st_ino == kept->inode)
		unlink(kept->path);
}

/* Keeps the newest files of each output. A window that could not be written has no file and does not count. */
static void prune(struct outputs *outputs)
{
	uint32_t nr_newer[OUTPUTS_MAX] = { 0 }, nr = 0;

	for (uint32_t i = outputs->nr_kept; i-- > 0;) {
		struct kept_output *kept = &outputs->kept[i];

		if (nr_newer[kept->output - outputs->list]++ < outputs->keep)
			continue;
		remove_kept(kept);
		free(MOVE(kept->path));
	}
	for (uint32_t i = 0; i < outputs->nr_kept; i++) {
		if (outputs->kept[i].path)
			outputs->kept[nr++] = outputs->kept[i];
	}
	outputs->nr_kept = nr;
}

/* `words`: NULL without windows. */
static int write_one(struct outputs *outputs, const struct output *output, const struct profile *profile, const struct output_words *words,
		     struct diag *diag)
{
	char path[PATH_MAX];
	int err = words ? output_pattern_path(output->path, words, path) : 0;

	if (err)
		return diag_errno(diag, -err, "cannot write %.200s: %s", output->path, strerror(-err));
	err = report_file_write(profile, output->format, &outputs->export, words ? path : output->path, REPORT_BYTES_MAX, diag);
	return err || !words || !outputs->keep ? err : keep(outputs, output, path);
}

static int write_to_stdout(struct outputs *outputs, const struct output *output, const struct profile *profile,
			   const struct output_window *window, struct diag *diag)
{
	int err = window ? write_heading(output->format, profile, window, diag) : 0;

	return err ? err : report_file_write(profile, output->format, &outputs->export, output->path, REPORT_BYTES_MAX, diag);
}

static int give_to(const struct outputs *outputs, output_take_fn take, const struct profile *profile, const struct output_window *window,
		   struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(REPORT_BYTES_MAX);
	int err = export_write(profile, outputs->receiver.format, &outputs->export, &bytes, diag);

	err = err ? err : bytes.err;
	return err ? err : take(outputs->receiver.arg, profile, window, &bytes);
}

static int give(const struct outputs *outputs, const struct profile *profile, const struct output_window *window, struct diag *diag)
{
	const struct output_receiver *receiver = &outputs->receiver;
	CLEANUP(profile_freep) struct profile *untimed = NULL;
	int first_err, err;

	if (!receiver->take_timed)
		return give_to(outputs, receiver->take, profile, window, diag);
	first_err = give_to(outputs, receiver->take_timed, profile, window, diag);
	err = profile_without_times(profile, &untimed) ?: give_to(outputs, receiver->take, untimed, window, diag);
	return first_err ? first_err : err;
}

int outputs_write(struct outputs *outputs, const struct profile *profile, const struct output_window *window, struct diag *diag)
{
	struct output_words words = { 0 };
	int first_err = 0;

	if (window)
		words = output_words_of(window->number, window->start_unix_ns, &outputs->newest_s);
	for (uint32_t i = 0; i < outputs->nr; i++) {
		struct output *output = &outputs->list[i];
		int err = is_stdout(output) ? write_to_stdout(outputs, output, profile, window, diag)
					    : write_one(outputs, output, profile, window ? &words : NULL, diag);

		output->is_written = !err;
		if (err && !first_err)
			first_err = err;
	}
	if (window && outputs->keep)
		prune(outputs);
	if (window && outputs->receiver.take) {
		int err = give(outputs, profile, window, diag);

		first_err = first_err ? first_err : err;
	}
	return first_err;
}
