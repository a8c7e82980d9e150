// SPDX-License-Identifier: Apache-2.0
#include "events/transfers_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/order.h"
#include "base/texts.h"
#include "events/line.h"

struct report { /* what all rows of a report share */
	struct buffer *lines;
	const struct sonde_io_options *options;
	const char *texts;
	const char *(*call_name)(uint32_t call);
	uint64_t time_unix_ns;
};

void transfers_heading(struct buffer *lines, const struct sonde_io_options *options, const char *command_line)
{
	if (options->format == SONDE_LINES_JSON)
		line_json_heading(lines, "sonde-io", command_line);
}

static uint64_t bytes_of(const struct transfers_row *row)
{
	return row->sides[SONDE_IO_READ].bytes + row->sides[SONDE_IO_WRITE].bytes;
}

static uint64_t calls_of(const struct transfers_row *row)
{
	return row->sides[SONDE_IO_READ].calls + row->sides[SONDE_IO_WRITE].calls;
}

static int by_bytes(const void *a, const void *b)
{
	const struct transfers_row *left = a, *right = b;
	int by_key = order(left->tgid, right->tgid) ?: order(left->file, right->file) ?: order(left->call, right->call);

	return order(bytes_of(right), bytes_of(left)) ?: order(calls_of(right), calls_of(left)) ?: by_key;
}

static const char *file_of(const struct report *report, const struct transfers_row *row)
{
	return row->file == TEXTS_NONE ? "[name lost]" : report->texts + row->file;
}

static void json_side(struct json *json, const char *name, const struct sonde_io_side *side)
{
	json_key(json, name);
	json_open(json, '{');
	json_key_u64(json, "nr_calls", side->calls);
	json_key_u64(json, "nr_failed", side->failed);
	json_key_u64(json, "bytes", side->bytes);
	json_key_u64(json, "nr_timed", side->calls - side->untimed);
	json_key_u64(json, "duration_ns", side->ns);
	json_key_u64(json, "max_ns", side->max_ns);
	json_close(json, '}');
}

static void json_row(const struct report *report, const struct transfers_row *row)
{
	struct json json = { .buffer = report->lines };
	uint32_t by = report->options->by;

	json_open(&json, '{');
	json_key_u64(&json, "time_unix_ns", report->time_unix_ns);
	if (by & SONDE_BY_PID)
		json_key_u64(&json, "pid", row->tgid);
	if (by & (SONDE_BY_PID | SONDE_BY_COMM))
		line_json_comm(&json, row->comm);
	if (by & SONDE_BY_CALL)
		json_key_text(&json, "call", report->call_name(row->call));
	if (by & SONDE_BY_FILE)
		json_key_text(&json, "file", file_of(report, row));
	json_side(&json, "read", &row->sides[SONDE_IO_READ]);
	json_side(&json, "write", &row->sides[SONDE_IO_WRITE]);
	json_close(&json, '}');
	buffer_text(report->lines, "\n");
}

static void print_heading(const struct report *report)
{
	uint32_t by = report->options->by;

	if (report->options->timestamps) {
		line_time(report->lines, report->time_unix_ns);
		buffer_text(report->lines, "\n");
	}
	if (by & SONDE_BY_PID)
		buffer_printf(report->lines, "%7s ", "PID");
	if (by & (SONDE_BY_PID | SONDE_BY_COMM))
		buffer_printf(report->lines, "%-15s ", "COMM");
	buffer_printf(report->lines, "%9s %13s %9s %13s %7s %10s %10s", "READS", "BYTES", "WRITES", "BYTES", "FAILED", "AVG(us)",
		      "MAX(us)");
	buffer_printf(report->lines, "%s%s\n", by & SONDE_BY_CALL ? " CALL            " : "", by & SONDE_BY_FILE ? " FILE" : "");
}

static void print_time(struct buffer *lines, uint64_t ns)
{
	buffer_printf(lines, " %8" PRIu64 ".%" PRIu64, ns / NS_PER_US, ns % NS_PER_US / 100);
}

static void print_row(const struct report *report, const struct transfers_row *row)
{
	const struct sonde_io_side *read = &row->sides[SONDE_IO_READ], *write = &row->sides[SONDE_IO_WRITE];
	uint32_t by = report->options->by;
	uint64_t timed = read->calls - read->untimed + write->calls - write->untimed;
	struct buffer *lines = report->lines;

	if (by & SONDE_BY_PID)
		buffer_printf(lines, "%7" PRIu32 " ", row->tgid);
	if (by & (SONDE_BY_PID | SONDE_BY_COMM)) {
		line_comm(lines, row->comm);
		buffer_text(lines, " ");
	}
	buffer_printf(lines, "%9" PRIu64 " %13" PRIu64 " %9" PRIu64 " %13" PRIu64 " %7" PRIu64, (uint64_t)read->calls,
		      (uint64_t)read->bytes, (uint64_t)write->calls, (uint64_t)write->bytes, (uint64_t)(read->failed + write->failed));
	if (timed) {
		print_time(lines, (read->ns + write->ns) / timed);
		print_time(lines, larger(read->max_ns, write->max_ns));
	} else {
		buffer_printf(lines, " %10s %10s", "-", "-");
	}
	if (by & SONDE_BY_CALL)
		buffer_printf(lines, " %-16s", report->call_name(row->call));
	if (by & SONDE_BY_FILE) {
		buffer_text(lines, " ");
		line_text(lines, file_of(report, row), 0);
	}
	buffer_text(lines, "\n");
}

static void print_rest(struct buffer *lines, const struct transfers_row *rows, uint32_t from, uint32_t nr)
{
	uint64_t calls = 0, bytes = 0;

	for (uint32_t i = from; i < nr; i++) {
		calls += calls_of(&rows[i]);
		bytes += bytes_of(&rows[i]);
	}
	if (from < nr)
		buffer_printf(lines, "... and %" PRIu32 " more with %" PRIu64 " calls and %" PRIu64 " bytes\n", nr - from, calls, bytes);
}

void transfers_rows(struct buffer *lines, const struct sonde_io_options *options, struct transfers_row *rows, uint32_t nr,
		    const char *texts, const char *(*call_name)(uint32_t call), uint64_t time_unix_ns)
{
	const struct report report = { lines, options, texts, call_name, time_unix_ns };
	uint32_t nr_shown = options->top && options->top < nr ? options->top : nr;
	bool is_json = options->format == SONDE_LINES_JSON;

	if (nr)
		qsort(rows, nr, sizeof(*rows), by_bytes);
	if (!is_json)
		print_heading(&report);
	for (uint32_t i = 0; i < nr_shown; i++)
		(is_json ? json_row : print_row)(&report, &rows[i]);
	if (!is_json) {
		print_rest(lines, rows, nr_shown, nr);
		buffer_text(lines, "\n");
	}
}
