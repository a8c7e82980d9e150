// SPDX-License-Identifier: Apache-2.0
#include "output/event_file.h"

#include <errno.h>
#include <string.h>

#include "abi/wait.h"
#include "base/buffer.h"
#include "codec/json.h"
#include "formats/frame_json.h"
#include "output/output.h"

#define EVENTS_VERSION 2
#define FLUSH_BYTES (256u << 10)
#define LINES_BYTES_MAX (64u << 20) /* not yet written: FLUSH_BYTES and one line, which may have a long stack */

struct event_file {
	struct output_stream *stream;
	struct buffer lines;
	struct json json;
	struct diag diag;   /* of the first failure */
	int err;
	uint64_t start_ns;
	uint8_t *is_used;   /* by the profile's stack number */
	uint32_t nr_stacks; /* capacity of is_used */
};

int event_file_new(const char *path, struct diag *diag, struct event_file **ret_file)
{
	CLEANUP(freep) struct event_file *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	err = output_stream_open(path, diag, &file->stream);
	if (err)
		return err;
	file->lines = BUFFER_INIT(LINES_BYTES_MAX);
	file->json.buffer = &file->lines;
	*ret_file = MOVE(file);
	return 0;
}

void event_file_free(struct event_file *file)
{
	if (!file)
		return;
	output_stream_free(file->stream);
	buffer_done(&file->lines);
	free(file->is_used);
	free(file);
}

/* --- lines ---------------------------------------------------------------------------------------------------------------------------- */

static void flush(struct event_file *file)
{
	if (!file->err)
		file->err =
		    file->lines.err ? file->lines.err : output_stream_write(file->stream, file->lines.data, file->lines.size, &file->diag);
	file->lines.size = 0;
}

static struct json *open_line(struct event_file *file)
{
	file->json.comma = false;
	json_open(&file->json, '{');
	return &file->json;
}

static void close_line(struct event_file *file)
{
	json_close(&file->json, '}');
	buffer_append(&file->lines, "\n", 1);
	if (file->lines.size >= FLUSH_BYTES || file->lines.err)
		flush(file);
}

static void key_number(struct json *json, const char *key, uint32_t number)
{
	json_key(json, key);
	if (number == EVENT_NONE)
		json_null(json);
	else
		json_u64(json, number);
}

static void key_time(struct event_file *file, const char *key, uint64_t time_ns)
{
	json_key(&file->json, key);
	json_i64(&file->json, (int64_t)(time_ns - file->start_ns));
}

void event_file_begin(struct event_file *file, uint64_t start_ns, const char *command_line)
{
	struct json *json = open_line(file);

	file->start_ns = start_ns;
	json_key_text(json, "record", "events");
	json_key_text(json, "format", "sonde-events");
	json_key_u64(json, "version", EVENTS_VERSION);
	json_key_text(json, "command_line", command_line);
	close_line(file);
}

void event_file_event(struct event_file *file, const struct sched_event *event)
{
	struct json *json = open_line(file);

	key_time(file, "time_ns", event->time_ns);
	json_key_u64(json, "cpu", event->cpu);
	key_number(json, event->is_wakeup ? "wake" : "off", event->thread);
	key_number(json, event->is_wakeup ? "waker" : "wait", event->cause);
	if (!event->is_wakeup)
		key_number(json, "on", event->next);
	close_line(file);
}

void event_file_thread(struct event_file *file, uint32_t number, uint32_t tgid, uint32_t tid, const char *comm)
{
	struct json *json = open_line(file);

	json_key_text(json, "record", "thread");
	json_key_u64(json, "thread", number);
	json_key_u64(json, "pid", tgid);
	json_key_u64(json, "tid", tid);
	json_key_text(json, "comm", comm);
	close_line(file);
}

/* --- stacks --------------------------------------------------------------------------------------------------------------------------- */

static void use_stack(struct event_file *file, uint32_t stack)
{
	if (stack == PROFILE_NONE || file->err)
		return;
	if (stack >= file->nr_stacks) {
		uint32_t nr = stack + stack / 2 + 256;
		uint8_t *is_used = realloc(file->is_used, nr);

		if (!is_used) {
			file->err = -ENOMEM;
			return;
		}
		memset(is_used + file->nr_stacks, 0, nr - file->nr_stacks);
		file->is_used = is_used;
		file->nr_stacks = nr;
	}
	file->is_used[stack] = 1;
}

static void key_stacks(struct event_file *file, const struct event_wait *wait)
{
	key_number(&file->json, "user_stack", wait->user_stack);
	key_number(&file->json, "kernel_stack", wait->kernel_stack);
	use_stack(file, wait->user_stack);
	use_stack(file, wait->kernel_stack);
}

void event_file_wait(struct event_file *file, const struct event_wait *wait)
{
	struct json *json = open_line(file);

	json_key_text(json, "record", "wait");
	json_key_u64(json, "wait", wait->number);
	json_key_u64(json, "state", wait->state);
	key_number(json, "syscall", wait->syscall == SONDE_NO_SYSCALL ? EVENT_NONE : wait->syscall);
	json_key_text(json, "kind", wait->kind);
	key_stacks(file, wait);
	close_line(file);
}

void event_file_waker(struct event_file *file, const struct event_wait *waker)
{
	struct json *json = open_line(file);

	json_key_text(json, "record", "waker");
	json_key_u64(json, "waker", waker->number);
	key_number(json, "thread", waker->thread);
	key_stacks(file, waker);
	close_line(file);
}

static void write_stack(struct event_file *file, const struct profile *profile, uint32_t stack, uint8_t *is_used)
{
	struct json *json = open_line(file);
	const uint32_t *locations;
	uint32_t nr;

	json_key_text(json, "record", "stack");
	json_key_u64(json, "stack", stack);
	json_key(json, "frames");
	json_open(json, '[');
	locations = profile_stack_at(profile, stack, &nr);
	for (uint32_t i = 0; i < nr; i++) {
		json_u64(json, locations[i]);
		is_used[locations[i]] = 1;
	}
	json_close(json, ']');
	close_line(file);
}

static void write_frame(struct event_file *file, const struct profile *profile, uint32_t location)
{
	struct json *json = open_line(file);

	json_key_text(json, "record", "frame");
	json_key_u64(json, "frame", location);
	write_frame_keys(json, profile, location);
	close_line(file);
}

static void write_end(struct event_file *file, const struct event_totals *totals)
{
	struct json *json = open_line(file);

	json_key_text(json, "record", "end");
	key_time(file, "time_ns", totals->end_ns);
	json_key_u64(json, "start_unix_ns", totals->start_ns + totals->unix_offset_ns);
	json_key_u64(json, "switches", totals->nr_switches);
	json_key_u64(json, "wakeups", totals->nr_wakeups);
	json_key_u64(json, "lost", totals->nr_lost);
	close_line(file);
}

int event_file_end(struct event_file *file, const struct profile *profile, const struct event_totals *totals, struct diag *diag)
{
	CLEANUP(freep) uint8_t *is_used = calloc(profile_nr_locations(profile) + 1, 1);

	if (!is_used && !file->err)
		file->err = -ENOMEM;
	for (uint32_t i = 0; !file->err && i < profile_nr_stacks(profile) && i < file->nr_stacks; i++) {
		if (file->is_used[i])
			write_stack(file, profile, i, is_used);
	}
	for (uint32_t i = 0; !file->err && i < profile_nr_locations(profile); i++) {
		if (is_used[i])
			write_frame(file, profile, i);
	}
	write_end(file, totals);
	flush(file);
	if (!file->err)
		file->err = output_stream_finish(file->stream, &file->diag);
	if (!file->err)
		return 0;
	return diag_errno(diag, -file->err, "%s", file->diag.text[0] ? file->diag.text : strerror(-file->err));
}
