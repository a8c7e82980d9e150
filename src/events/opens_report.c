// SPDX-License-Identifier: Apache-2.0
#include "events/opens_report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/texts.h"
#include "events/file_name.h"
#include "events/line.h"

#define FLAG_LARGE_FILE 0100000 /* O_LARGEFILE of the kernel, asm-generic/fcntl.h: C libraries set it, and call it 0 */

/* Of a name that is too long for the kernel, its begin is known. */
static bool is_cut(const struct sonde_open_record *record)
{
	return record->name_bytes == SONDE_NAME_MAX_BYTES && record->result == -ENAMETOOLONG;
}

void opens_path(struct buffer *path, const struct sonde_open_record *record, const struct sonde_file_text *file, const char *text)
{
	const char *name = text, *parts = text + record->name_bytes;

	switch (record->from) {
	case SONDE_OPEN_ABSOLUTE:
		buffer_append(path, name, strnlen(name, record->name_bytes));
		break;
	case SONDE_OPEN_RELATIVE:
		if (file->kind == SONDE_FILE_PATH)
			file_name_parts(path, file, parts, file->bytes - record->name_bytes);
		else
			buffer_text(path, "[not open]");
		while (record->name_bytes > 2 && !strncmp(name, "./", 2) && name[2])
			name += 2;
		while (*name == '/') /* of a folder that is the name's root (RESOLVE_IN_ROOT) */
			name++;
		if (path->size && path->data[path->size - 1] != '/')
			buffer_text(path, "/");
		buffer_append(path, name, strnlen(name, record->name_bytes - (size_t)(name - text)));
		break;
	case SONDE_OPEN_OF_FILE:
		file_name(path, file, text);
		break;
	default:
		buffer_text(path, "[name not readable]");
	}
	if (is_cut(record))
		buffer_text(path, "...");
}

static void flags_text(struct buffer *text, uint64_t flags)
{
	static const struct {
		uint64_t bit;
		const char *name;
	} bits[] = {
		{ O_CREAT, "CREAT" },	    { O_EXCL, "EXCL" },		{ O_NOCTTY, "NOCTTY" },	  { O_TRUNC, "TRUNC" },
		{ O_APPEND, "APPEND" },	    { O_NONBLOCK, "NONBLOCK" }, { O_DIRECT, "DIRECT" },	  { O_DIRECTORY, "DIRECTORY" },
		{ O_NOFOLLOW, "NOFOLLOW" }, { O_NOATIME, "NOATIME" },	{ O_CLOEXEC, "CLOEXEC" }, { O_PATH, "PATH" },
	};
	static const char *const modes[] = { "RDONLY", "WRONLY", "RDWR", "NONE" };
	uint64_t known = O_ACCMODE | O_SYNC | O_TMPFILE | FLAG_LARGE_FILE;

	buffer_text(text, modes[flags & O_ACCMODE]);
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
		if (flags & bits[i].bit)
			buffer_printf(text, "|%s", bits[i].name);
	}
	if ((flags & O_SYNC) == O_SYNC)
		buffer_text(text, "|SYNC");
	else if (flags & O_DSYNC)
		buffer_text(text, "|DSYNC");
	if ((flags & O_TMPFILE) == O_TMPFILE)
		buffer_text(text, "|TMPFILE");
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
		known |= bits[i].bit;
	if (flags & ~known)
		buffer_printf(text, "|0x%" PRIx64, flags & ~known);
}

static void sums_heading(struct buffer *lines, const struct sonde_files_options *options)
{
	if (options->by & SONDE_BY_PID)
		buffer_printf(lines, "%7s ", "PID");
	if (options->by & (SONDE_BY_PID | SONDE_BY_COMM))
		buffer_printf(lines, "%-15s ", "COMM");
	buffer_printf(lines, "%10s %10s %-12s%s\n", "OPENS", "FAILED", "LAST ERROR", options->by & SONDE_BY_FILE ? " PATH" : "");
}

void opens_heading(struct buffer *lines, const struct sonde_files_options *options, const char *command_line)
{
	if (options->format == SONDE_LINES_JSON)
		line_json_heading(lines, "sonde-files", command_line);
	else if (options->format == SONDE_LINES_TEXT && !options->sums)
		buffer_printf(lines, "%-12s %7s %-15s %4s %-12s %-24s %s\n", "TIME", "PID", "COMM", "FD", "ERROR", "FLAGS", "PATH");
}

static void json_open_line(struct buffer *lines, const struct sonde_open_record *record, const char *path, uint64_t unix_offset_ns)
{
	struct json json = { .buffer = lines };

	json_open(&json, '{');
	json_key_u64(&json, "time_unix_ns", record->time_ns + unix_offset_ns);
	json_key_u64(&json, "pid", record->tgid);
	json_key_u64(&json, "tid", record->tid);
	line_json_comm(&json, record->comm);
	json_key(&json, "fd");
	if (record->result < 0)
		json_null(&json);
	else
		json_u64(&json, (uint64_t)record->result);
	json_key(&json, "error");
	if (record->result < 0 && line_error_name((int)-record->result))
		json_text(&json, line_error_name((int)-record->result));
	else if (record->result < 0)
		json_i64(&json, -record->result);
	else
		json_null(&json);
	json_key_u64(&json, "flags", record->flags);
	json_key_text(&json, "path", path);
	json_close(&json, '}');
	buffer_text(lines, "\n");
}

void opens_line(struct buffer *lines, const struct sonde_files_options *options, const struct sonde_open_record *record, const char *path,
		uint64_t unix_offset_ns)
{
	struct buffer flags = BUFFER_INIT(1 << 10);
	char comm[SONDE_COMM_BYTES + 1] = "";

	memcpy(comm, record->comm, SONDE_COMM_BYTES);
	if (options->format == SONDE_LINES_JSON) {
		json_open_line(lines, record, path, unix_offset_ns);
		return;
	}
	if (options->format == SONDE_LINES_BPFTRACE) {
		buffer_printf(lines, "PID %" PRIu32 ": ", (uint32_t)record->tgid);
		line_text(lines, comm, 0);
		buffer_text(lines, " is opening: ");
		line_text(lines, path, 0);
		buffer_text(lines, "\n");
		return;
	}
	line_time(lines, record->time_ns + unix_offset_ns);
	buffer_printf(lines, " %7" PRIu32 " ", (uint32_t)record->tgid);
	line_comm(lines, record->comm);
	if (record->result < 0)
		buffer_printf(lines, " %4s ", "-");
	else
		buffer_printf(lines, " %4" PRId64 " ", (int64_t)record->result);
	line_error(lines, record->result < 0 ? (int)-record->result : 0, 12);
	flags_text(&flags, record->flags);
	buffer_printf(lines, " %-24s ", flags.data ? flags.data : "");
	buffer_done(&flags);
	line_text(lines, path, 0);
	buffer_text(lines, "\n");
}

/* --- sums ----------------------------------------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const struct opens_row *left = a, *right = b;
	int by_sum = order(right->opens + right->failed, left->opens + left->failed);

	return by_sum ? by_sum : order(left->tgid, right->tgid) ?: order(left->path, right->path);
}

static void json_row(struct buffer *lines, const struct sonde_files_options *options, const struct opens_row *row, const char *path,
		     uint64_t time_unix_ns)
{
	struct json json = { .buffer = lines };

	json_open(&json, '{');
	json_key_u64(&json, "time_unix_ns", time_unix_ns);
	if (options->by & SONDE_BY_PID)
		json_key_u64(&json, "pid", row->tgid);
	if (options->by & (SONDE_BY_PID | SONDE_BY_COMM))
		line_json_comm(&json, row->comm);
	json_key_u64(&json, "nr_opens", row->opens);
	json_key_u64(&json, "nr_failed", row->failed);
	json_key(&json, "last_error");
	if (row->failed && line_error_name((int)row->last_error))
		json_text(&json, line_error_name((int)row->last_error));
	else
		json_null(&json);
	if (options->by & SONDE_BY_FILE)
		json_key_text(&json, "path", path);
	json_close(&json, '}');
	buffer_text(lines, "\n");
}

static void print_row(struct buffer *lines, const struct sonde_files_options *options, const struct opens_row *row, const char *path)
{
	if (options->by & SONDE_BY_PID)
		buffer_printf(lines, "%7" PRIu32 " ", row->tgid);
	if (options->by & (SONDE_BY_PID | SONDE_BY_COMM)) {
		line_comm(lines, row->comm);
		buffer_text(lines, " ");
	}
	buffer_printf(lines, "%10" PRIu64 " %10" PRIu64 " ", row->opens, row->failed);
	line_error(lines, row->failed ? (int)row->last_error : 0, options->by & SONDE_BY_FILE ? 13 : 0);
	if (options->by & SONDE_BY_FILE)
		line_text(lines, path, 0);
	buffer_text(lines, "\n");
}

static void print_rest(struct buffer *lines, const struct opens_row *rows, uint32_t from, uint32_t nr)
{
	uint64_t sum = 0;

	for (uint32_t i = from; i < nr; i++)
		sum += rows[i].opens + rows[i].failed;
	if (from < nr)
		buffer_printf(lines, "... and %" PRIu32 " more with %" PRIu64 " calls\n", nr - from, sum);
}

void opens_rows(struct buffer *lines, const struct sonde_files_options *options, struct opens_row *rows, uint32_t nr, const char *texts,
		uint64_t time_unix_ns)
{
	uint32_t nr_shown = options->top && options->top < nr ? options->top : nr;
	bool is_json = options->format == SONDE_LINES_JSON;

	if (nr)
		qsort(rows, nr, sizeof(*rows), by_number);
	if (!is_json && options->timestamps) {
		line_time(lines, time_unix_ns);
		buffer_text(lines, "\n");
	}
	if (!is_json)
		sums_heading(lines, options);
	for (uint32_t i = 0; i < nr_shown; i++) {
		const char *path = rows[i].path == TEXTS_NONE ? "[name lost]" : texts + rows[i].path;

		if (is_json)
			json_row(lines, options, &rows[i], path, time_unix_ns);
		else
			print_row(lines, options, &rows[i], path);
	}
	if (!is_json) {
		print_rest(lines, rows, nr_shown, nr);
		buffer_text(lines, "\n");
	}
}
