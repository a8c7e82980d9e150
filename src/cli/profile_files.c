// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/confine.h"
#include "cli/output.h"
#include "cli/session_end.h"
#include "store/store.h"
#include "store/store_path.h"

#define WINDOWS_PER_LINE 50 /* of progress */

const char *profile_read_format_at(uint32_t i)
{
	const char *text;

	return sonde_read_format_name(i, &text);
}

const char *profile_write_format_at(uint32_t i)
{
	const char *suffixes, *text;

	return sonde_format_name(i, &suffixes, &text);
}

static int check_format(const char *format, struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer names = BUFFER_INIT(256);
	const char *name;

	for (uint32_t i = 0; (name = profile_write_format_at(i)); i++) {
		if (!strcmp(name, format))
			return 0;
		buffer_printf(&names, "%s%s", i ? ", " : "", name);
	}
	return diag_errno(diag, EINVAL, "there is no format '%.60s': --format takes one of %s", format, names.data ? names.data : "");
}

static int check_suffix(const char *path, struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer known = BUFFER_INIT(512);
	const char *suffixes, *text;

	if (!strcmp(path, "-") || sonde_format_by_path(path))
		return 0;
	for (uint32_t i = 0; sonde_format_name(i, &suffixes, &text); i++)
		buffer_printf(&known, "%s%s", i ? " " : "", suffixes);
	return diag_errno(diag, EINVAL, "the suffix of '%.80s' names no format: use one of %s, or --format", path,
			  known.data ? known.data : "");
}

int profile_check_outputs(const struct option_texts *outputs, const char *format, struct diag *diag)
{
	int err = format ? check_format(format, diag) : 0;

	for (uint32_t i = 0; !err && i < outputs->nr; i++) {
		if (!format)
			err = check_suffix(outputs->texts[i], diag);
		for (uint32_t k = 0; !err && k < i; k++) {
			if (!strcmp(outputs->texts[i], outputs->texts[k]))
				err = diag_errno(diag, EINVAL, "the output '%.80s' is given twice: leave one out", outputs->texts[i]);
		}
	}
	return err;
}

/* As store_next. Damaged windows are counted and left out. */
static int next_window(struct store *store, const struct store_path *place, uint64_t after, uint32_t *nr_damaged, struct diag *diag,
		       struct store_row *row)
{
	int found = store_next(store, place->type, after, place->from_ns, place->to_ns, diag, row);

	for (; found == -EUCLEAN && row->id > after; ++*nr_damaged) {
		after = row->id;
		diag->err = 0;
		found = store_next(store, place->type, after, place->from_ns, place->to_ns, diag, row);
	}
	return found;
}

/* Adds the windows from `row` on, one in memory at a time. The rest of the machine's files need not be read any more. */
static int add_windows(struct sonde_profile *profile, const char *path, const struct store_path *place, struct store *store,
		       struct store_row *row, uint32_t *nr_damaged, struct diag *diag)
{
	struct sonde_profile *window = sonde_profile_new();
	bool shows_progress = output_progress_wanted();
	int found = 1, err = 0;

	for (uint32_t nr = 1; found > 0 && !err; nr++) {
		uint64_t after = row->id;

		err = sonde_profile_read_bytes(window, path, row->body, row->body_bytes, NULL);
		if (err)
			diag_errno(diag, -err, "%s", sonde_profile_error(window));
		else if ((err = sonde_profile_merge(profile, window)))
			diag_errno(diag, -err, "%s", sonde_profile_error(profile));
		if (shows_progress && !(nr % WINDOWS_PER_LINE))
			output_progress("%" PRIu32 " windows", nr);
		store_row_done(row);
		found = err ? 0 : next_window(store, place, after, nr_damaged, diag, row);
	}
	if (shows_progress)
		output_progress_done();
	sonde_profile_free(window);
	return err ? err : found;
}

#define DEFAULT_TYPE "cpu"

/* Profiles of different types have no sum. Where no type is said: the only one, or cpu beside others, which are named. */
static int choose_type(struct store *store, struct store_path *place, struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer others = BUFFER_INIT(1024);
	char types[STORE_MAX_TYPES][STORE_TYPE_BYTES];
	int nr = store_types(store, place->from_ns, place->to_ns, diag, types);
	bool is_said = *place->type, is_there = false;

	if (nr < 0)
		return nr;
	if (!nr)
		return diag_errno(diag, ENODATA, "no window of the store %.200s is from that time", place->directory);
	if (!is_said)
		snprintf(place->type, sizeof(place->type), "%s", nr == 1 ? types[0] : DEFAULT_TYPE);
	for (int i = 0; i < nr; i++) {
		if (strcmp(types[i], place->type) != 0)
			buffer_printf(&others, "%s%s", others.size ? ", " : "", types[i]);
		else
			is_there = true;
	}
	if (!is_there)
		return diag_errno(diag, ENODATA, "no %s profile of the store %.200s is from that time, but there is: %s", place->type,
				  place->directory, others.data ?: "");
	if (!is_said && others.size)
		output_say("%s profiles; of that time there is also: %s (%.200s@...,%s)", place->type, others.data, place->directory,
			   strcmp(types[0], place->type) ? types[0] : types[1]);
	return 0;
}

/* Adds up the windows of a store. */
static int read_store(struct sonde_profile *profile, const char *path, struct store_path *place, const struct sonde_read_options *options)
{
	CLEANUP(store_closep) struct store *store = NULL;
	CLEANUP(store_row_done) struct store_row row = { 0 };
	struct diag diag = { 0 };
	uint32_t nr_damaged = 0;
	int err = store_open(place->directory, STORE_READ, &diag, NULL, &store);

	if (!err) /* it opens all of the store's files */
		err = choose_type(store, place, &diag);
	if (!err)
		err = next_window(store, place, 0, &nr_damaged, &diag, &row);
	if (!err)
		err = diag_errno(&diag, ENODATA, "no window of the store %.200s is from that time", place->directory);
	if (err > 0 && options->on_bytes)
		options->on_bytes(options->on_bytes_arg);
	if (err > 0)
		err = add_windows(profile, path, place, store, &row, &nr_damaged, &diag);
	if (nr_damaged)
		output_say("warning: %" PRIu32 " windows of the store are damaged and left out", nr_damaged);
	if (err) /* the profile has no words for it */
		output_say("%s", failure_text(&diag, err));
	return err;
}

int profile_read(struct sonde_profile *profile, const char *path, const struct sonde_read_options *options)
{
	struct store_path place;
	struct diag diag = { 0 };
	const char *warning;
	int is_store = store_path_parse(path, &place, &diag), err;

	if (is_store < 0)
		output_say("%s", diag.text);
	err = is_store < 0 ? is_store : is_store ? read_store(profile, path, &place, options) : sonde_profile_read(profile, path, options);

	while (!err && (warning = sonde_profile_warning(profile)))
		output_say("warning: %s", warning);
	return err;
}

int profile_try_outputs(const struct verb *verb, struct sonde_profile *profile, const struct option_texts *outputs, const char *format)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < outputs->nr; i++)
		err = sonde_profile_check_output(profile, outputs->texts[i], format);
	return err ? profile_failed(verb, profile, err) : SONDE_EXIT_REPORT;
}

int profile_write_all(const struct verb *verb, struct sonde_profile *profile, const struct option_texts *outputs,
		      const struct sonde_write_options *options)
{
	int code = SONDE_EXIT_REPORT;

	for (uint32_t i = 0; i < outputs->nr; i++) {
		int err = sonde_profile_write(profile, outputs->texts[i], options),
		    failure = err ? profile_failed(verb, profile, err) : SONDE_EXIT_REPORT;

		code = code ? code : failure;
	}
	return code;
}

/* Limits the memory that is mapped writable, not the resident pages. So the limit refuses no memory that was not requested. */
static void limit_memory(uint64_t mib)
{
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory would count */
	struct rlimit limit;

	if (getrlimit(RLIMIT_DATA, &limit))
		return;
	limit.rlim_cur = limit.rlim_cur < mib << 20 ? limit.rlim_cur : mib << 20;
	if (setrlimit(RLIMIT_DATA, &limit))
		return; /* cannot fail: lowering the soft limit is always allowed */
#endif
}

void profile_confine(uint64_t memory_mib, const struct option_texts *outputs)
{
	limit_memory(memory_mib);
	confine_writing(outputs ? outputs->texts : NULL, outputs ? outputs->nr : 0);
}

static bool is_perf_data(const char *path)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char head[8];

	return fd >= 0 && pread(fd, head, sizeof(head), 0) == sizeof(head) &&
	       (!memcmp(head, "PERFILE2", sizeof(head)) || !memcmp(head, "2ELIFREP", sizeof(head)));
}

void profile_confine_reading(void *next)
{
	const char *path = next;
	struct store_path place;

	if (path && store_path_parse(path, &place, NULL) > 0)
		path = place.directory;
	if (!path || !is_perf_data(path))
		confine_reading(&path, path ? 1 : 0);
}

int profile_failed(const struct verb *verb, const struct sonde_profile *profile, int err)
{
	const char *text = sonde_profile_error(profile);
	struct rlimit limit;

	if (sonde_profile_exit_code(profile) == SONDE_EXIT_USAGE)
		return output_usage(verb, text);
	if (err == -ENOMEM && !getrlimit(RLIMIT_DATA, &limit) && limit.rlim_cur != RLIM_INFINITY)
		output_say("%s (it may take %" PRIu64 " MiB; --memory allows more)", text, (uint64_t)limit.rlim_cur >> 20);
	else if (*text)
		output_say("%s", text);
	return SONDE_EXIT_FAILED;
}

bool profile_is_empty(const struct sonde_profile *profile)
{
	return !sonde_profile_nr_samples(profile) && !sonde_profile_nr_histograms(profile);
}

int profile_no_samples(const char *path)
{
	output_say("no samples: there are none in %s", strcmp(path, "-") ? path : "standard input");
	return SONDE_EXIT_NO_SAMPLES;
}
