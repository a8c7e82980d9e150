// SPDX-License-Identifier: Apache-2.0
#include "send/clickhouse_push.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codec/gzip.h"
#include "codec/json.h"
#include "codec/json_read.h"

#define MAX_TEXT_BYTES	4096
#define MAX_LINES_BYTES ((size_t)1 << 30)

/* What the first line says of the window. */
struct window {
	struct buffer key, host;
	uint64_t start_unix_ns, duration_ns;
};

static void window_done(struct window *window)
{
	buffer_done(&window->key);
	buffer_done(&window->host);
}

static void read_account(struct json_reader *r, struct window *window)
{
	if (!json_enter(r, '{'))
		return;
	while (json_next_key(r, &window->key)) {
		if (!strcmp(window->key.data, "start_unix_ns"))
			window->start_unix_ns = json_read_u64(r);
		else if (!strcmp(window->key.data, "duration_ns"))
			window->duration_ns = json_read_u64(r);
		else if (!strcmp(window->key.data, "host"))
			json_read_text(r, &window->host);
		else
			json_skip(r);
	}
}

static int read_first_line(const char *line, size_t size, struct window *window)
{
	struct json_reader r = json_reader_of(line, size);

	if (json_enter(&r, '{')) {
		while (json_next_key(&r, &window->key)) {
			if (!strcmp(window->key.data, "account"))
				read_account(&r, window);
			else
				json_skip(&r);
		}
	}
	return r.bad || !window->start_unix_ns ? -EBADMSG : 0;
}

/* The line's object, with the window in front. */
static void add_line(const struct window *window, const char *line, size_t size, struct buffer *lines)
{
	struct json json = { .buffer = lines };

	json_open(&json, '{');
	json_key_u64(&json, "start_unix_ns", window->start_unix_ns);
	json_key_u64(&json, "window_ns", window->duration_ns);
	json_key_text(&json, "host", window->host.data ?: "");
	buffer_text(lines, ",");
	buffer_append(lines, line + 1, size - 1);
	buffer_text(lines, "\n");
}

static int pack(const void *settings, const struct push_profile *profile, struct buffer *body)
{
	CLEANUP(window_done) struct window window = { .key = BUFFER_INIT(MAX_TEXT_BYTES), .host = BUFFER_INIT(MAX_TEXT_BYTES) };
	CLEANUP(buffer_done) struct buffer lines = BUFFER_INIT(MAX_LINES_BYTES);
	const char *pos = profile->bytes, *end = pos + profile->size, *newline = memchr(pos, '\n', profile->size) ?: end;
	int err = read_first_line(pos, (size_t)(newline - pos), &window);

	if (err)
		return err;
	for (pos = newline + 1; pos < end && !lines.err; pos = newline + 1) {
		newline = memchr(pos, '\n', (size_t)(end - pos)) ?: end;
		if (*pos == '{')
			add_line(&window, pos, (size_t)(newline - pos), &lines);
	}
	return lines.err ? lines.err : gzip(lines.data ?: "", lines.size, GZIP_SMALL, body);
}

static void judge(const void *settings, const struct post_answer *answer, struct push_answer *ret_answer)
{
	ret_answer->result = push_result_of_http(answer);
	/* 404: the table or the data base is missing, and may be made. ClickHouse has nothing to say of an INSERT that went well: other
	 * words are an exception that came after the headers, or of another server. */
	if (answer->status == 404 || (ret_answer->result == PUSH_DELIVERED && answer->size))
		ret_answer->result = PUSH_LATER;
	if (ret_answer->result != PUSH_DELIVERED)
		push_say(ret_answer, answer->body, strnlen(answer->body, answer->size), "HTTP", answer->status);
}

const struct push_type clickhouse_push = {
	.format = "jsonl",
	.headers = (const char *const[]){ "content-type: application/x-ndjson", "content-encoding: gzip", "expect:", NULL },
	.pack = pack,
	.judge = judge,
};
