// SPDX-License-Identifier: Apache-2.0
#include "session/outputs.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "session/output.h"
#include "session/report_file.h"

#define REPORT_BYTES_MAX ((size_t)4 << 30)
#define MAX_KEPT (1u << 24)
#define TIME_BYTES 32

struct kept_output {
	char *path;
	uint32_t window;
	dev_t device; /* of the file that we made, which somebody may have put another one in the place of */
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

/* --- patterns ---------------------------------------------------------------------------------------------------------------------------- */

static const char *time_text(uint64_t unix_ns, char text[TIME_BYTES])
{
	time_t seconds = (time_t)(unix_ns / NS_PER_S);
	struct tm tm;

	text[0] = '\0';
	if (gmtime_r(&seconds, &tm))
		strftime(text, TIME_BYTES, "%Y%m%dT%H%M%SZ", &tm);
	return text;
}

/* 0; -EINVAL: it is none that tells one window from another; -ENAMETOOLONG. */
static int expand(const char *pattern, const struct output_window *window, char path[PATH_MAX])
{
	CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(PATH_MAX - 1);
	bool is_pattern = false;
	char time[TIME_BYTES];

	for (const char *at = pattern; *at; at++) {
		if (*at != '%') {
			buffer_append(&text, at, 1);
			continue;
		}
		at++;
		if (*at == 'n')
			buffer_printf(&text, "%" PRIu32, window->number);
		else if (*at == 't')
			buffer_text(&text, time_text(window->start_unix_ns, time));
		else if (*at == '%')
			buffer_append(&text, at, 1);
		else
			return -EINVAL;
		is_pattern |= *at != '%';
	}
	if (text.err || !is_pattern)
		return text.err ? -ENAMETOOLONG : -EINVAL;
	memcpy(path, text.data, text.size + 1);
	return 0;
}

/* What goes to stdout, report after report, is to be told apart there. */
static bool has_many_reports(enum export_format format)
{
	return format == EXPORT_TEXT || format == EXPORT_FOLDED || format == EXPORT_JSONL;
}

static int check_windows(const struct output *output, struct diag *diag)
{
	char path[PATH_MAX];
	int err;

	if (is_stdout(output))
		return has_many_reports(output->format) ? 0 : diag_errno(diag, EINVAL, "report after report on standard output is for text, folded and jsonl: give %s a file with -o FILE-%%n",
									  export_format_name(output->format));
	err = expand(output->path, &(struct output_window){ .number = 1 }, path);
	if (err == -EINVAL)
		return diag_errno(diag, EINVAL, "each window has a file of its own: '%.200s' needs %%n (its number) or %%t (its time) in its name; a percent sign is %%%%", output->path);
	return err ? diag_errno(diag, -err, "cannot write %.200s: %s", output->path, strerror(-err)) : output_check(path, diag);
}

/* --- adding ------------------------------------------------------------------------------------------------------------------------------ */

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
	err = outputs->has_windows ? check_windows(output, diag) : output_check(path, diag);
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
	return false;
}

bool outputs_have_stdout(const struct outputs *outputs)
{
	for (uint32_t i = 0; i < outputs->nr; i++) {
		if (is_stdout(&outputs->list[i]))
			return true;
	}
	return false;
}

/* --- writing ----------------------------------------------------------------------------------------------------------------------------- */

/* A line of its own before a report as text, an empty one between folded ones: a line of JSON says itself where a profile begins. */
static int write_heading(enum export_format format, const struct output_window *window, struct diag *diag)
{
	time_t seconds = (time_t)(window->start_unix_ns / NS_PER_S);
	struct tm tm;
	char text[TIME_BYTES] = "\n";
	int err;

	if (format == EXPORT_JSONL || (format == EXPORT_FOLDED && window->number == 1))
		return 0;
	if (format == EXPORT_TEXT && localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "[%H:%M:%S]\n", &tm);
	err = file_write(STDOUT_FILENO, text, strlen(text));
	return err ? diag_errno(diag, -err, "cannot write standard output: %s", strerror(-err)) : 0;
}

static int keep(struct outputs *outputs, const char *path, uint32_t window)
{
	struct kept_output kept;
	struct stat status;

	if (lstat(path, &status) || !S_ISREG(status.st_mode)) /* a FIFO or a link was there before us, and stays */
		return 0;
	kept = (struct kept_output){ .path = strdup(path), .window = window, .device = status.st_dev, .inode = status.st_ino };
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

/* Removes the files of windows that are too old. */
static void prune(struct outputs *outputs, uint32_t window)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < outputs->nr_kept; i++) {
		struct kept_output kept = outputs->kept[i];

		if (window - kept.window < outputs->keep) {
			outputs->kept[nr++] = kept;
			continue;
		}
		remove_kept(&kept);
		free(kept.path);
	}
	outputs->nr_kept = nr;
}

static int write_one(struct outputs *outputs, const struct output *output, const struct profile *profile, const struct output_window *window, struct diag *diag)
{
	char path[PATH_MAX];
	int err;

	if (!window)
		return report_file_write(profile, output->format, &outputs->export, output->path, REPORT_BYTES_MAX, diag);
	if (is_stdout(output)) {
		err = write_heading(output->format, window, diag);
		return err ? err : report_file_write(profile, output->format, &outputs->export, output->path, REPORT_BYTES_MAX, diag);
	}
	err = expand(output->path, window, path);
	if (err)
		return diag_errno(diag, -err, "cannot write %.200s: %s", output->path, strerror(-err));
	err = report_file_write(profile, output->format, &outputs->export, path, REPORT_BYTES_MAX, diag);
	return err || !outputs->keep ? err : keep(outputs, path, window->number);
}

int outputs_write(struct outputs *outputs, const struct profile *profile, const struct output_window *window, struct diag *diag)
{
	int first_err = 0;

	for (uint32_t i = 0; i < outputs->nr; i++) {
		int err = write_one(outputs, &outputs->list[i], profile, window, diag);

		outputs->list[i].is_written = !err;
		if (err && !first_err)
			first_err = err;
	}
	if (window && outputs->keep)
		prune(outputs, window->number);
	return first_err;
}
