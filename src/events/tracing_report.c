// SPDX-License-Identifier: Apache-2.0
#include "events/tracing_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/order.h"
#include "events/line.h"
#include "model/profile.h"
#include "show/histogram_text.h"

#define UNREAD "[not in memory]" /* nothing is there, or its page is elsewhere, and a probe may not wait for it */

static int by_count(const void *a, const void *b)
{
	const struct tracing_row *left = a, *right = b;

	int by_key = order(left->probe, right->probe) ?: memcmp(&left->key, &right->key, sizeof(left->key));

	return order(left->sum.count, right->sum.count) ?: by_key;
}

/* A text that fills its place may have been longer. */
static void add_text(struct buffer *text, const char *bytes, size_t size)
{
	size_t length = strnlen(bytes, size);
	char copy[SONDE_PROBE_KEY_BYTES + 4];

	snprintf(copy, sizeof(copy), "%.*s%s", (int)length, bytes, length >= size - 1 ? "..." : "");
	buffer_text(text, copy);
}

void tracing_key_text(struct sonde_probe_key *key, const char text[SONDE_PROBE_TEXT_BYTES])
{
	size_t length = strnlen(text, SONDE_PROBE_TEXT_BYTES);

	snprintf(key->arg.text, sizeof(key->arg.text), "%.*s%s", (int)length, text, length >= SONDE_PROBE_TEXT_BYTES - 1 ? "..." : "");
}

static void add_number(struct buffer *text, uint64_t number, bool is_address, bool is_signed)
{
	if (is_address)
		buffer_printf(text, "0x%" PRIx64, number);
	else if (is_signed)
		buffer_printf(text, "%" PRId64, (int64_t)number);
	else
		buffer_printf(text, "%" PRIu64, number);
}

static void arg_text(struct buffer *text, const struct tracing_key_type *type, const struct sonde_probe_key *key)
{
	CLEANUP(buffer_done) struct buffer plain = BUFFER_INIT(1 << 10);

	if (key->unread) {
		buffer_text(text, UNREAD);
	} else if (type->is_text) {
		add_text(&plain, key->arg.text, sizeof(key->arg.text));
		line_text(text, plain.data ? plain.data : "", 0);
	} else {
		add_number(text, key->arg.number, type->is_address, type->is_signed);
	}
}

/* "pid 185 (cat), cpu 1, fd 3, syscall:read": what the row is a sum of. */
static void key_text(struct buffer *text, const struct tracing_words *words, const struct tracing_row *row)
{
	const struct sonde_probe_key *key = &row->key;
	uint32_t by = words->options->by;

	if (by & SONDE_BY_PID)
		buffer_printf(text, "pid %" PRIu32 ", ", (uint32_t)key->tgid);
	if (by & SONDE_BY_TID)
		buffer_printf(text, "tid %" PRIu32 ", ", (uint32_t)key->tid);
	if (by & SONDE_BY_CPU)
		buffer_printf(text, "cpu %" PRIu32 ", ", (uint32_t)key->cpu);
	if (by & (SONDE_BY_COMM | SONDE_BY_PID | SONDE_BY_TID)) {
		char comm[SONDE_COMM_BYTES + 1] = "";

		memcpy(comm, by & SONDE_BY_COMM ? key->comm : row->sum.comm, SONDE_COMM_BYTES);
		buffer_text(text, "comm ");
		line_text(text, comm, 0);
		buffer_text(text, ", ");
	}
	if (words->options->by_arg) {
		buffer_printf(text, "%s ", words->options->by_arg);
		arg_text(text, &words->key_types[row->probe % MAX_PROBES], key);
		buffer_text(text, ", ");
	}
	line_text(text, words->probe_text(words->arg, row->probe), 0);
}

/* The next of the frames, without its newline; *ret_bytes of it. NULL: there are no more. */
static const char *next_frame(const char **frames, size_t *ret_bytes)
{
	const char *frame = *frames;

	if (!frame || !*frame)
		return NULL;
	*ret_bytes = strcspn(frame, "\n");
	*frames += *ret_bytes + 1;
	return frame;
}

static void json_frames(struct json *json, const char *frames)
{
	struct buffer name = BUFFER_INIT(1 << 16);
	const char *frame;
	size_t bytes;

	if (!frames)
		return;
	json_key(json, "stack");
	json_open(json, '[');
	while ((frame = next_frame(&frames, &bytes)) != NULL) {
		name.size = 0;
		buffer_printf(&name, "%.*s", (int)bytes, frame);
		json_text(json, name.data ? name.data : "");
	}
	json_close(json, ']');
	buffer_done(&name);
}

static void text_frames(struct buffer *lines, const char *frames)
{
	const char *frame;
	size_t bytes;

	while ((frame = next_frame(&frames, &bytes)) != NULL)
		buffer_printf(lines, "    %.*s\n", (int)bytes, frame);
}

static void json_slots(struct json *json, const struct sonde_probe_sum *sum)
{
	json_key_u64(json, "sum_ns", sum->sum_ns);
	json_key(json, "slots_us");
	json_open(json, '[');
	for (uint32_t i = 0; i < SONDE_PROBE_SLOTS; i++) {
		if (!sum->slots[i])
			continue;
		json_open(json, '{');
		json_key_u64(json, "low", i ? 1ULL << i : 0);
		json_key_u64(json, "count", sum->slots[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void json_row(struct buffer *lines, const struct tracing_words *words, const struct tracing_row *row, const char *frames)
{
	struct json json = { .buffer = lines };
	struct buffer arg = BUFFER_INIT(1 << 10);
	uint32_t by = words->options->by;

	json_open(&json, '{');
	json_key_text(&json, "probe", words->probe_text(words->arg, row->probe));
	if (by & SONDE_BY_PID)
		json_key_u64(&json, "pid", row->key.tgid);
	if (by & SONDE_BY_TID)
		json_key_u64(&json, "tid", row->key.tid);
	if (by & SONDE_BY_CPU)
		json_key_u64(&json, "cpu", row->key.cpu);
	if (by & (SONDE_BY_COMM | SONDE_BY_PID | SONDE_BY_TID))
		line_json_comm(&json, by & SONDE_BY_COMM ? row->key.comm : row->sum.comm);
	if (words->options->by_arg) {
		arg_text(&arg, &words->key_types[row->probe % MAX_PROBES], &row->key);
		json_key_text(&json, words->options->by_arg, arg.data ? arg.data : "");
		buffer_done(&arg);
	}
	json_key_u64(&json, "nr_hits", row->sum.count);
	if (words->options->latency)
		json_slots(&json, &row->sum);
	json_frames(&json, frames);
	json_close(&json, '}');
	buffer_text(lines, "\n");
}

void tracing_row(struct buffer *lines, const struct tracing_words *words, const struct tracing_row *row, const char *frames)
{
	if (words->options->format == SONDE_LINES_JSON) {
		json_row(lines, words, row, frames);
		return;
	}
	buffer_printf(lines, "%10" PRIu64 "  ", (uint64_t)row->sum.count);
	key_text(lines, words, row);
	buffer_text(lines, "\n");
	text_frames(lines, frames);
}

static int add_histogram(struct profile *profile, const struct tracing_words *words, const struct tracing_row *row)
{
	struct buffer key = BUFFER_INIT(1 << 12);
	struct profile_histogram histogram = { .name = profile_string(profile, "latency"),
					       .unit = profile_string(profile, "us"),
					       .user_stack = PROFILE_NONE,
					       .kernel_stack = PROFILE_NONE };
	int err;

	key_text(&key, words, row);
	_Static_assert(SONDE_PROBE_SLOTS == HISTOGRAM_SLOTS, "slots are copied");
	histogram.key = profile_string(profile, key.data ? key.data : "");
	histogram.histogram.scale = HISTOGRAM_LOG2;
	histogram.histogram.sum = row->sum.sum_ns / NS_PER_US;
	memcpy(histogram.histogram.slots, row->sum.slots, sizeof(histogram.histogram.slots));
	err = key.err ?: histogram.key == PROFILE_NONE || profile_histogram(profile, &histogram) == PROFILE_NONE ? -ENOMEM : 0;
	buffer_done(&key);
	return err;
}

static int histograms(struct buffer *lines, const struct tracing_words *words, const struct tracing_row *rows, uint32_t nr)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	int err = profile ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < nr; i++)
		err = add_histogram(profile, words, &rows[i]);
	if (!err)
		histogram_print_whole(lines, profile);
	return err;
}

int tracing_rows(struct buffer *lines, const struct tracing_words *words, struct tracing_row *rows, uint32_t nr)
{
	if (nr)
		qsort(rows, nr, sizeof(*rows), by_count);
	if (words->options->latency && words->options->format != SONDE_LINES_JSON)
		return histograms(lines, words, rows, nr);
	for (uint32_t i = 0; i < nr; i++)
		tracing_row(lines, words, &rows[i], NULL);
	return lines->err;
}

/* --- single hits ---------------------------------------------------------------------------------------------------------------------- */

void tracing_heading(struct buffer *lines, const struct sonde_trace_options *options, const char *command_line)
{
	if (options->format == SONDE_LINES_JSON)
		line_json_heading(lines, "sonde-trace", command_line);
	else if (options->print)
		buffer_printf(lines, "%-12s %7s %7s %-15s %3s %s\n", "TIME", "PID", "TID", "COMM", "CPU", "PROBE");
}

static void printed_text(struct buffer *text, const struct sonde_probe_record *record, const struct tracing_printed *printed, uint32_t i)
{
	if (record->values.unread >> i & 1)
		buffer_text(text, UNREAD);
	else if (printed->field.text)
		add_text(text, record->values.texts[i], SONDE_PROBE_TEXT_BYTES);
	else
		add_number(text, record->values.numbers[i], printed->is_address, printed->field.is_signed);
}

static void json_hit(struct buffer *lines, const struct tracing_words *words, const struct sonde_probe_record *record,
		     const struct tracing_printed *printed, uint32_t nr_printed, uint64_t unix_offset_ns, const char *frames)
{
	struct json json = { .buffer = lines };
	struct buffer value = BUFFER_INIT(1 << 10);

	json_open(&json, '{');
	json_key_u64(&json, "time_unix_ns", record->time_ns + unix_offset_ns);
	json_key_text(&json, "probe", words->probe_text(words->arg, record->probe));
	json_key_u64(&json, "pid", record->tgid);
	json_key_u64(&json, "tid", record->tid);
	line_json_comm(&json, record->comm);
	json_key_u64(&json, "cpu", record->cpu);
	for (uint32_t i = 0; i < nr_printed; i++) {
		if (record->values.absent >> i & 1)
			continue;
		value.size = 0;
		printed_text(&value, record, &printed[i], i);
		json_key_text(&json, printed[i].name, value.size ? value.data : "");
	}
	json_frames(&json, frames);
	json_close(&json, '}');
	buffer_text(lines, "\n");
	buffer_done(&value);
}

void tracing_line(struct buffer *lines, const struct tracing_words *words, const struct sonde_probe_record *record,
		  const struct tracing_printed *printed, uint32_t nr_printed, uint64_t unix_offset_ns, const char *frames)
{
	struct buffer value = BUFFER_INIT(1 << 10);

	if (words->options->format == SONDE_LINES_JSON) {
		json_hit(lines, words, record, printed, nr_printed, unix_offset_ns, frames);
		return;
	}
	line_time(lines, record->time_ns + unix_offset_ns);
	buffer_printf(lines, " %7" PRIu32 " %7" PRIu32 " ", (uint32_t)record->tgid, (uint32_t)record->tid);
	line_comm(lines, record->comm);
	buffer_printf(lines, " %3" PRIu32 " ", (uint32_t)record->cpu);
	line_text(lines, words->probe_text(words->arg, record->probe), 0);
	for (uint32_t i = 0; i < nr_printed; i++) {
		if (record->values.absent >> i & 1)
			continue;
		value.size = 0;
		printed_text(&value, record, &printed[i], i);
		buffer_printf(lines, " %s=", printed[i].name);
		line_text(lines, value.size ? value.data : "", 0);
	}
	buffer_text(lines, "\n");
	text_frames(lines, frames);
	buffer_done(&value);
}
