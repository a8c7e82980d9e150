// SPDX-License-Identifier: Apache-2.0
#include "send/otlp_push.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/plain_text.h"
#include "codec/gzip.h"
#include "codec/protobuf_read.h"
#include "send/grpc.h"

#define MAX_MESSAGE_BYTES ((size_t)1 << 30)
#define MAX_HEADERS   80
#define WORDS	      300 /* of the server, that are kept */

/* ExportProfilesServiceResponse. */
enum { RESPONSE_PARTIAL = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE };

/* The message as it is sent: for gRPC behind its frame. */
static int pack(const void *bytes, size_t size, bool is_grpc, struct buffer *packed)
{
	size_t opened = is_grpc ? grpc_open(packed) : 0;
	int err = gzip(bytes, size, GZIP_SMALL, packed);

	if (!err && is_grpc)
		grpc_close(packed, opened, true);
	return err;
}

/* --- answers -------------------------------------------------------------------------------------------------------------------------- */

/* The server's own words, or ours about its code. They go to a terminal. */
static void say(struct push_answer *answer, const char *words, size_t size, const char *code_name, int code)
{
	if (size)
		snprintf(answer->text, sizeof(answer->text), "%s %d: %.*s", code_name, code, (int)(size < WORDS ? size : WORDS), words);
	else
		snprintf(answer->text, sizeof(answer->text), "%s %d", code_name, code);
	plain_make(answer->text);
}

static void copy_words(char *to, size_t room, const char *words, size_t size)
{
	snprintf(to, room, "%.*s", (int)(size < WORDS ? size : WORDS), words);
}

static void read_partial(struct reader message, struct push_answer *answer)
{
	struct protobuf_field field;

	while (protobuf_next(&message, &field)) {
		if (field.number == PARTIAL_REJECTED)
			answer->rejected = field.value;
		else if (field.number == PARTIAL_MESSAGE)
			copy_words(answer->text, sizeof(answer->text), (const char *)field.bytes.pos, reader_left(&field.bytes));
	}
	plain_make(answer->text);
}

/* Whatever the body is, the status says that the message was taken. */
static void read_response(struct reader message, struct push_answer *answer)
{
	struct protobuf_field field;

	while (protobuf_next(&message, &field)) {
		if (field.number == RESPONSE_PARTIAL && field.type == PROTOBUF_BYTES)
			read_partial(field.bytes, answer);
	}
}

static bool mentions(const char *text, const char *const *words)
{
	for (; *words; words++) {
		if (strstr(text, *words))
			return true;
	}
	return false;
}

static enum push_result grpc_result(const struct post_answer *answer)
{
	static const char *const sizes[] = { "larger than max", "too large", "exceeds", NULL };
	static const char *const forms[] = { "unmarshal", "wireType", "proto:", NULL };

	switch (answer->grpc_status) {
	case GRPC_OK:
		return PUSH_DELIVERED;
	case GRPC_EXHAUSTED: /* of its memory or rate; or its limit for a message */
		return mentions(answer->grpc_message, sizes) ? PUSH_REFUSED : PUSH_LATER;
	case GRPC_INTERNAL:
		return mentions(answer->grpc_message, forms) ? PUSH_REFUSED : PUSH_LATER;
	case GRPC_INVALID:
	case GRPC_FAILED:
	case GRPC_RANGE:
	case GRPC_DATA_LOSS:
		return PUSH_REFUSED;
	default:
		return PUSH_LATER;
	}
}

static void judge_grpc(const struct post_answer *answer, struct push_answer *ret_answer)
{
	static const char wrong_version[] = "; it may be of another version: profiles are sent as of opentelemetry-proto 1.10";
	size_t length;

	if (!grpc_is_answer(answer)) {
		ret_answer->result = PUSH_LATER;
		say(ret_answer, "no gRPC there", strlen("no gRPC there"), "HTTP", answer->status);
		return;
	}
	ret_answer->result = grpc_result(answer);
	if (ret_answer->result == PUSH_DELIVERED) {
		read_response(grpc_message(answer), ret_answer);
		return;
	}
	say(ret_answer, answer->grpc_message, strlen(answer->grpc_message), "gRPC status", answer->grpc_status);
	length = strlen(ret_answer->text);
	if (answer->grpc_status == GRPC_INTERNAL && ret_answer->result == PUSH_REFUSED)
		snprintf(ret_answer->text + length, sizeof(ret_answer->text) - length, "%s", wrong_version);
	else if (answer->grpc_status == GRPC_UNIMPLEMENTED)
		snprintf(ret_answer->text + length, sizeof(ret_answer->text) - length,
			 "; it takes no profiles: a Collector needs --feature-gates=service.profilesSupport");
}

static void judge_http(const struct post_answer *answer, struct push_answer *ret_answer)
{
	static const int refusals[] = { 400, 406, 411, 413, 414, 415, 422, 431 };

	if (answer->status / 100 == 2) {
		ret_answer->result = PUSH_DELIVERED;
		read_response(reader_of(answer->body, answer->size), ret_answer);
		return;
	}
	ret_answer->result = PUSH_LATER;
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (answer->status == refusals[i])
			ret_answer->result = PUSH_REFUSED;
	}
	say(ret_answer, answer->body, strnlen(answer->body, answer->size), "HTTP", answer->status);
}

void otlp_judge(const struct post_answer *answer, bool is_grpc, struct push_answer *ret_answer)
{
	ret_answer->retry_after_s = answer->retry_after_s;
	if (is_grpc)
		judge_grpc(answer, ret_answer);
	else
		judge_http(answer, ret_answer);
}

/* --- sending -------------------------------------------------------------------------------------------------------------------------- */

static int send_http(const struct otlp_pusher *pusher, const struct buffer *packed, struct post_answer *answer, struct diag *diag)
{
	const char *headers[MAX_HEADERS] = { "content-type: application/x-protobuf", "content-encoding: gzip", "expect:" };
	struct post_request request = { .url = pusher->endpoint->url,
					.headers = headers,
					.body = packed->data,
					.size = packed->size,
					.stop = pusher->stop };
	uint32_t nr = 3;

	for (const char *const *header = pusher->headers; *header && nr < MAX_HEADERS - 1; header++)
		headers[nr++] = *header;
	return post_send(pusher->client, &request, answer, diag);
}

static int send_grpc(const struct otlp_pusher *pusher, const struct buffer *packed, struct post_answer *answer, struct diag *diag)
{
	const struct grpc_call call = {
		.url = pusher->endpoint->url, .headers = pusher->headers, .body = packed, .stop = pusher->stop, .is_packed = true
	};

	return grpc_send(pusher->client, &call, answer, diag);
}

int otlp_push(const struct otlp_pusher *pusher, const void *bytes, size_t size, struct push_answer *ret_answer)
{
	CLEANUP(buffer_done) struct buffer packed = BUFFER_INIT(MAX_MESSAGE_BYTES);
	CLEANUP(freep) struct post_answer *answer = calloc(1, sizeof(*answer));
	bool is_grpc = pusher->endpoint->is_grpc;
	struct diag diag = { 0 };
	int err = answer ? pack(bytes, size, is_grpc, &packed) : -ENOMEM;

	*ret_answer = (struct push_answer){ 0 };
	if (err)
		return err;
	ret_answer->nr_bytes = packed.size;
	err = is_grpc ? send_grpc(pusher, &packed, answer, &diag) : send_http(pusher, &packed, answer, &diag);
	if (err == -ENOMEM)
		return err;
	if (!err) {
		otlp_judge(answer, is_grpc, ret_answer);
		return 0;
	}
	ret_answer->result = err == -ECANCELED ? PUSH_STOPPED : PUSH_LATER;
	ret_answer->may_be_repeated = answer->was_sent;
	snprintf(ret_answer->text, sizeof(ret_answer->text), "%s", diag.text);
	plain_make(ret_answer->text);
	return 0;
}
