// SPDX-License-Identifier: Apache-2.0
/* profile_file: reads a profile from a file, and writes it to files. */
#include "output/profile_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sized.h"
#include "import/gunzip.h"
#include "import/import.h"
#include "model/profile_merge.h"
#include "output/export.h"
#include "output/output.h"
#include "output/report_file.h"
#include "perfdata/perf_data.h"
#include "replay/perf_profile.h"

#define DEFAULT_MAX_BYTES ((uint64_t)4 << 30)
#define STEP_BYTES	  ((size_t)256 << 10)
/* Limits for unpacking: UNPACKED_TIMES the file's size, at least UNPACKED_ANYHOW. gzip packs zeros a thousandfold; profiles pack less. */
#define UNPACKED_TIMES	  64
#define UNPACKED_ANYHOW	  ((size_t)256 << 20)
/* The same limits for a report. A name is in the file once, but in the report for each frame: with 1.28 million stacks, jsonl is 85 times
 * as large as the packed pprof. */
#define REPORT_TIMES	  256
#define REPORT_ANYHOW	  ((size_t)1 << 30)

struct sonde_profile *sonde_profile_new(void)
{
	return calloc(1, sizeof(struct sonde_profile));
}

void profile_file_forget(struct sonde_profile *profile)
{
	profile_free(MOVE(profile->profile));
	profile->diff.profile = NULL; /* freed above */
	diff_done(&profile->diff);
	buffer_done(&profile->text);
	profile->nr_reported_notes = 0;
}

void sonde_profile_free(struct sonde_profile *profile)
{
	if (!profile)
		return;
	profile_file_forget(profile);
	free(profile);
}

const char *sonde_profile_error(const struct sonde_profile *profile)
{
	return profile ? profile->diag.text : strerror(ENOMEM);
}

int sonde_profile_exit_code(const struct sonde_profile *profile)
{
	return profile ? profile->exit_code : SONDE_EXIT_FAILED;
}

/* Adds the file's name to the message; returns `err`. */
static int fail(struct sonde_profile *profile, enum sonde_exit code, int err, const char *verb, const char *path)
{
	struct diag cause = profile->diag;
	const char *shown = strcmp(path, "-") ? path : "standard input";

	if (!cause.err)
		snprintf(cause.text, sizeof(cause.text), "%s", strerror(-err));
	snprintf(profile->diag.text, sizeof(profile->diag.text), "cannot %s %.200s: %.280s", verb, shown, cause.text);
	profile->diag.err = -err;
	profile->exit_code = code;
	return err;
}

/* Appends everything up to the end of the file, up to the buffer's limit. */
static int read_all(int fd, struct buffer *buffer, struct diag *diag)
{
	size_t had = buffer->size;
	struct stat st;
	ssize_t size;

	if (fstat(fd, &st))
		return diag_errno(diag, errno, "%s", strerror(errno));
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < buffer->max && buffer_reserve(buffer, (size_t)st.st_size + 1))
		buffer->size = had; /* room for all of it at once */
	do {
		size_t left = buffer->max - buffer->size, want = left < STEP_BYTES ? left : STEP_BYTES;
		char beyond, *room = want ? buffer_reserve(buffer, want) : &beyond;

		if (!room)
			return diag_errno(diag, ENOMEM, "no memory for what it holds");
		size = read(fd, room, want ? want : 1);
		buffer->size -= want;
		if (size > 0 && !want)
			return diag_errno(diag, EFBIG, "it is larger than %zu bytes", buffer->max);
		if (size > 0)
			buffer->size += (size_t)size;
	} while (size > 0 || (size < 0 && errno == EINTR));
	return size < 0 ? diag_errno(diag, errno, "%s", strerror(errno)) : 0;
}

/* Reads the first bytes, up to `size`. Returns their number or a negative errno. */
static int read_head(int fd, char *to, size_t size, struct diag *diag)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = read(fd, to + done, size - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return diag_errno(diag, errno, "%s", strerror(errno));
		if (!got)
			break;
		done += (size_t)got;
	}
	return (int)done;
}

/* A perf recording may be larger than memory, so it is read as a stream. */
static int import_perf_data(struct sonde_profile *profile, const struct perf_data_source *source, const struct sonde_read_options *options)
{
	const struct perf_profile_options how = { .lines = !options->no_lines, .timestamps = options->timestamps };
	struct stat st;

	if (source->fd >= 0 && !fstat(source->fd, &st))
		profile->nr_bytes = (uint64_t)st.st_size; /* of a pipe 0 */
	return perf_profile_read(source, &how, profile->profile, &profile->diag);
}

/* Replaces the packed bytes by the unpacked ones. */
static int unpack(struct buffer *bytes, struct diag *diag)
{
	size_t max = bytes->size > UNPACKED_ANYHOW / UNPACKED_TIMES ? bytes->size * UNPACKED_TIMES : UNPACKED_ANYHOW;
	CLEANUP(buffer_done) struct buffer unpacked = BUFFER_INIT(max < bytes->max ? max : bytes->max);
	struct buffer packed = *bytes;
	struct diag cause = { 0 };
	int err = gunzip(bytes->data, bytes->size, &unpacked, &cause);

	if (err == -EFBIG && unpacked.max < bytes->max)
		return diag_errno(diag, EFBIG, "it unpacks to more than %d times its size: if that is right, unpack it with gunzip first",
				  UNPACKED_TIMES);
	if (err)
		return diag_errno(diag, -err, "%s", cause.text);
	unpacked.max = bytes->max;
	*bytes = unpacked;
	unpacked = packed;
	return 0;
}

static int take_read_options(struct sonde_profile *profile, const struct sonde_read_options *options,
			     struct sonde_read_options *ret_options)
{
	enum import_format format;
	int err = sized_options(ret_options, sizeof(*ret_options), options, &profile->diag);

	if (!err && ret_options->format)
		err = import_format_by_name(ret_options->format, &profile->diag, &format);
	if (err)
		profile->exit_code = SONDE_EXIT_USAGE;
	return err;
}

static int import_bytes(struct sonde_profile *profile, struct buffer *bytes, const struct sonde_read_options *options)
{
	enum import_format format;
	int err = 0;

	profile->nr_bytes = bytes->size;
	if (import_is_gzip(bytes->data, bytes->size))
		err = unpack(bytes, &profile->diag);
	if (!err && options->format)
		err = import_format_by_name(options->format, &profile->diag, &format);
	else if (!err)
		err = import_detect(bytes->data, bytes->size, &profile->diag, &format);
	if (!err && format == IMPORT_PERF_DATA)
		return import_perf_data(profile, &(struct perf_data_source){ .bytes = bytes->data, .nr_bytes = bytes->size, .fd = -1 },
					options);
	if (!err && options->on_bytes)
		options->on_bytes(options->on_bytes_arg);
	return err ? err : import_read(bytes->data, bytes->size, format, profile->profile, &profile->diag, &profile->nr_reported_notes);
}

/* Reads from the current position of `fd`. */
static int import_fd(struct sonde_profile *profile, int fd, const struct sonde_read_options *options)
{
	CLEANUP(buffer_done) struct buffer bytes = BUFFER_INIT(options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES);
	enum import_format format;
	char head[sizeof(uint64_t)];
	int nr = read_head(fd, head, sizeof(head), &profile->diag), err;

	if (nr < 0)
		return nr;
	if (perf_data_is(head, (size_t)nr) && (!options->format || !strcmp(options->format, import_format_name(IMPORT_PERF_DATA))))
		return import_perf_data(profile, &(struct perf_data_source){ .bytes = head, .nr_bytes = sizeof(head), .fd = fd }, options);
	/* no format begins with a zero byte: refuses /dev/zero and files that begin with a hole at once */
	if (nr && !*head && !options->format)
		return import_detect(head, (size_t)nr, &profile->diag, &format);
	buffer_append(&bytes, head, (size_t)nr);
	err = bytes.err ? bytes.err : read_all(fd, &bytes, &profile->diag);
	return err ? err : import_bytes(profile, &bytes, options);
}

static int import_path(struct sonde_profile *profile, const char *path, const struct sonde_read_options *options)
{
	CLEANUP(closep) int fd = -1;

	if (!strcmp(path, "-"))
		return import_fd(profile, STDIN_FILENO, options);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? diag_errno(&profile->diag, errno, "%s", strerror(errno)) : import_fd(profile, fd, options);
}

/* Takes the options, and begins with an empty profile. */
static int begin_reading(struct sonde_profile *profile, const struct sonde_read_options *options, struct sonde_read_options *ret_options)
{
	int err;

	if (!profile)
		return -EINVAL;
	profile->diag.err = 0;
	err = take_read_options(profile, options, ret_options);
	if (err)
		return err;
	profile_file_forget(profile);
	profile->profile = profile_new();
	return 0;
}

static int end_reading(struct sonde_profile *profile, const char *name, int err)
{
	if (err) {
		profile_free(MOVE(profile->profile));
		return fail(profile, SONDE_EXIT_FAILED, err, "read", name);
	}
	profile_close(profile->profile);
	snprintf(profile->name, sizeof(profile->name), "%s", name);
	return 0;
}

int sonde_profile_read(struct sonde_profile *profile, const char *path, const struct sonde_read_options *options)
{
	struct sonde_read_options known;
	int err = begin_reading(profile, options, &known);

	return err ? err : end_reading(profile, path, profile->profile ? import_path(profile, path, &known) : -ENOMEM);
}

/* Borrows the bytes; unpacking replaces them. */
static int import_memory(struct sonde_profile *profile, const void *bytes, size_t size, const struct sonde_read_options *options)
{
	CLEANUP(buffer_done) struct buffer copy = BUFFER_INIT(options->max_bytes ? options->max_bytes : DEFAULT_MAX_BYTES);

	buffer_append(&copy, bytes, size);
	return copy.err ? copy.err : import_bytes(profile, &copy, options);
}

int sonde_profile_read_bytes(struct sonde_profile *profile, const char *name, const void *bytes, size_t size,
			     const struct sonde_read_options *options)
{
	struct sonde_read_options known;
	int err = begin_reading(profile, options, &known);

	return err ? err : end_reading(profile, name, profile->profile ? import_memory(profile, bytes, size, &known) : -ENOMEM);
}

int sonde_profile_merge_part(struct sonde_profile *profile, const struct sonde_profile *more, uint32_t part, uint32_t nr_parts)
{
	int err;

	if (!profile || !more || !more->profile || part >= nr_parts)
		return -EINVAL;
	profile->diag.err = 0;
	if (!profile->profile)
		profile->profile = profile_new();
	err = profile->profile ? profile_merge_part(profile->profile, more->profile, part, nr_parts) : -ENOMEM;
	if (err == -EINVAL)
		diag_errno(&profile->diag, EINVAL, "%.200s holds other values than the profiles before it", more->name);
	profile->nr_bytes += more->nr_bytes;
	snprintf(profile->name, sizeof(profile->name), "%s", more->name);
	if (!err)
		return 0;
	profile_file_forget(profile);
	return fail(profile, SONDE_EXIT_FAILED, err, "add", more->name);
}

int sonde_profile_merge(struct sonde_profile *profile, const struct sonde_profile *more)
{
	return sonde_profile_merge_part(profile, more, 0, 1);
}

int sonde_profile_note(struct sonde_profile *profile, const char *text)
{
	if (!profile || !profile->profile)
		return -EINVAL;
	account_note(profile_account(profile->profile), "%s", text);
	return 0;
}

const char *sonde_profile_warning(struct sonde_profile *profile)
{
	const struct account *account = profile && profile->profile ? profile_account_of(profile->profile) : NULL;

	return account && profile->nr_reported_notes < account->nr_notes ? account->notes[profile->nr_reported_notes++] : NULL;
}

uint64_t sonde_profile_nr_samples(const struct sonde_profile *profile)
{
	return profile && profile->profile ? profile_nr_samples(profile->profile) : 0;
}

uint64_t sonde_profile_nr_histograms(const struct sonde_profile *profile)
{
	return profile && profile->profile ? profile_nr_histograms(profile->profile) : 0;
}

static int choose_format(const char *path, const char *name, struct diag *diag, enum export_format *ret_format)
{
	if (!name && !strcmp(path, "-"))
		name = "text";
	return name ? export_format_by_name(name, diag, ret_format) : export_format_by_path(path, diag, ret_format);
}

/* Refuses a format that would leave out all the profile has: such a file would be worse than none. */
static int check_histograms(struct sonde_profile *profile, enum export_format format)
{
	bool alone = profile->histograms_alone ||
		     (profile->profile && !profile_nr_samples(profile->profile) && profile_nr_histograms(profile->profile));

	if (!alone || export_format_has_histograms(format))
		return 0;
	profile->exit_code = SONDE_EXIT_USAGE;
	return diag_errno(&profile->diag, EINVAL,
			  "%s holds stacks, and here are histograms alone; text, json, jsonl, html and top hold them",
			  export_format_name(format));
}

int sonde_profile_check_output(struct sonde_profile *profile, const char *path, const char *format)
{
	enum export_format chosen;
	int err;

	if (!profile)
		return -EINVAL;
	profile->diag.err = 0;
	err = choose_format(path, format, &profile->diag, &chosen);
	if (err) {
		profile->exit_code = SONDE_EXIT_USAGE;
		return err;
	}
	err = check_histograms(profile, chosen);
	if (err)
		return err;
	err = output_check(path, &profile->diag);
	if (err)
		profile->exit_code = SONDE_EXIT_FAILED;
	return err;
}

int profile_file_show_value(struct sonde_profile *profile, const char *type)
{
	CLEANUP(buffer_done) struct buffer there = BUFFER_INIT(1024);
	struct profile_value_type types[PROFILE_MAX_VALUES];
	uint32_t nr_types, found = profile_find_value(profile->profile, type);

	memcpy(types, profile_value_types(profile->profile, &nr_types), sizeof(types));
	if (found != PROFILE_NONE) {
		profile_set_value_types(profile->profile, types, nr_types, found);
		return 0;
	}
	for (uint32_t i = 0; i < nr_types; i++)
		buffer_printf(&there, " %.60s", profile_string_text(profile->profile, types[i].type));
	profile->exit_code = SONDE_EXIT_USAGE;
	return diag_errno(&profile->diag, EINVAL, "the profile has no values of type '%.60s'; it has:%s", type,
			  there.data ? there.data : " none");
}

static size_t report_bytes_max(const struct sonde_profile *profile)
{
	return profile->nr_bytes > REPORT_ANYHOW / REPORT_TIMES ? profile->nr_bytes * REPORT_TIMES : REPORT_ANYHOW;
}

/* Takes the options, and refuses what the format cannot hold. */
static int begin_writing(struct sonde_profile *profile, const char *path, const struct sonde_write_options *options,
			 struct export_options *ret_export, enum export_format *ret_format)
{
	struct sonde_write_options known;
	int err = sized_options(&known, sizeof(known), options, &profile->diag);

	if (!err && !profile->profile)
		err = diag_errno(&profile->diag, EINVAL, "nothing was read that could be written");
	if (!err && known.value)
		err = profile_file_show_value(profile, known.value);
	if (!err)
		err = choose_format(path, known.format, &profile->diag, ret_format);
	if (!err)
		err = check_histograms(profile, *ret_format);
	if (!err && profile->diff.rows && profile_nr_samples(profile->profile) && !diff_format_carries(export_format_name(*ret_format)))
		err = diag_errno(&profile->diag, EINVAL,
				 "%s holds one value for each stack, not a difference; html, svg, pprof, json, jsonl and folded hold both",
				 export_format_name(*ret_format));
	if (err) {
		profile->exit_code = SONDE_EXIT_USAGE;
		return err;
	}
	*ret_export = (struct export_options){ .delimited = known.delimited,
					       .annotate = known.annotate,
					       .offsets = known.offsets,
					       .threads = known.threads,
					       .source_lines = known.source_lines,
					       .profile_id = known.profile_id };
	return 0;
}

static int end_writing(struct sonde_profile *profile, int err)
{
	if (err)
		profile->exit_code = err == -EINVAL ? SONDE_EXIT_USAGE : SONDE_EXIT_FAILED;
	return err;
}

int sonde_profile_write(struct sonde_profile *profile, const char *path, const struct sonde_write_options *options)
{
	struct export_options export;
	enum export_format format;
	int err;

	if (!profile)
		return -EINVAL;
	profile->diag.err = 0;
	err = begin_writing(profile, path, options, &export, &format);
	return err ? err : end_writing(profile, report_file_write(profile->profile, format, &export, path, report_bytes_max(profile),
								   &profile->diag));
}

int sonde_profile_write_bytes(struct sonde_profile *profile, const struct sonde_write_options *options,
			      int (*take)(void *arg, const void *bytes, size_t size), void *arg)
{
	struct export_options export;
	enum export_format format;
	int err;

	if (!profile || !take)
		return -EINVAL;
	profile->diag.err = 0;
	err = begin_writing(profile, "-", options, &export, &format);
	if (!err) {
		CLEANUP(buffer_done) struct buffer bytes = { .max = report_bytes_max(profile), .take = take, .taker = arg };

		err = export_write(profile->profile, format, &export, &bytes, &profile->diag);
		if (!err)
			buffer_give(&bytes);
		err = end_writing(profile, err ? err : bytes.err);
	}
	return err;
}

const char *sonde_read_format_name(uint32_t i, const char **ret_text)
{
	if (i >= IMPORT_FORMAT_COUNT)
		return NULL;
	*ret_text = import_format_text((enum import_format)i);
	return import_format_name((enum import_format)i);
}
