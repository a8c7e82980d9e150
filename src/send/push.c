// SPDX-License-Identifier: Apache-2.0
#include "send/push.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/plain_text.h"
#include "send/grpc.h"

#define MAX_MESSAGE_BYTES ((size_t)1 << 30)
#define MAX_HEADERS	  80
#define MAX_WORDS	  300 /* of the server, that are kept */

void push_say(struct push_answer *answer, const char *words, size_t size, const char *code_name, int code)
{
	int length = (int)(size < MAX_WORDS ? size : MAX_WORDS);

	if (size)
		snprintf(answer->text, sizeof(answer->text), "%s %d: %.*s", code_name, code, length, words);
	else
		snprintf(answer->text, sizeof(answer->text), "%s %d", code_name, code);
	plain_make(answer->text);
}

/* A Collector's receiver says 400, with Go's words. */
static bool is_too_large(const struct post_answer *answer)
{
	static const char words[] = "body too large";

	return answer->status == 413 || (answer->status == 400 && memmem(answer->body, answer->size, words, strlen(words)));
}

enum push_result push_result_of_http(const struct post_answer *answer)
{
	static const int refusals[] = { 400, 406, 411, 414, 415, 422, 431 };
	int status = answer->status;

	if (status / 100 == 2)
		return PUSH_DELIVERED;
	if (is_too_large(answer))
		return PUSH_TOO_LARGE;
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (status == refusals[i])
			return PUSH_REFUSED;
	}
	return PUSH_LATER;
}

static enum push_result grpc_result(const struct post_answer *answer)
{
	if (grpc_is_too_large(answer))
		return PUSH_TOO_LARGE;
	if (grpc_is_refusal(answer))
		return PUSH_REFUSED;
	return answer->grpc_status == GRPC_OK ? PUSH_DELIVERED : PUSH_LATER;
}

void push_judge_grpc(const void *settings, const struct post_answer *answer, struct push_answer *ret_answer)
{
	static const char none[] = "no gRPC there";

	ret_answer->result = grpc_is_answer(answer) ? grpc_result(answer) : PUSH_LATER;
	ret_answer->retry_after_s = grpc_retry_after_s(answer);
	if (!grpc_is_answer(answer))
		push_say(ret_answer, none, strlen(none), "HTTP", answer->status);
	else if (ret_answer->result != PUSH_DELIVERED)
		push_say(ret_answer, answer->grpc_message, strlen(answer->grpc_message), "gRPC status", answer->grpc_status);
}

static void fill_headers(const struct pusher *pusher, const char *headers[MAX_HEADERS])
{
	uint32_t nr = 0;

	for (const char *const *header = pusher->type->headers; *header; header++)
		headers[nr++] = *header;
	for (const char *const *header = pusher->headers; *header && nr < MAX_HEADERS - 1; header++)
		headers[nr++] = *header;
	headers[nr] = NULL;
}

static int send_body(const struct pusher *pusher, const struct buffer *body, struct post_answer *answer, struct push_answer *ret_answer)
{
	const char *headers[MAX_HEADERS];
	const struct post_request request = { .url = pusher->url,
					      .headers = headers,
					      .body = body->data,
					      .size = body->size,
					      .is_http2 = pusher->type->is_http2,
					      .stop = pusher->stop };
	struct diag diag = { 0 };
	int err;

	fill_headers(pusher, headers);
	err = post_send(pusher->client, &request, answer, &diag);
	if (err == -ENOMEM)
		return err;
	if (!err) {
		ret_answer->retry_after_s = answer->retry_after_s;
		pusher->type->judge(pusher->settings, answer, ret_answer);
		return 0;
	}
	ret_answer->result = err == -ECANCELED ? PUSH_STOPPED : PUSH_LATER;
	ret_answer->may_be_repeated = answer->was_sent;
	snprintf(ret_answer->text, sizeof(ret_answer->text), "%s", diag.text);
	plain_make(ret_answer->text);
	return 0;
}

int push(const struct pusher *pusher, const struct push_profile *profile, struct push_answer *ret_answer)
{
	CLEANUP(buffer_done) struct buffer body = BUFFER_INIT(MAX_MESSAGE_BYTES);
	CLEANUP(freep) struct post_answer *answer = calloc(1, sizeof(*answer));
	int err = answer ? pusher->type->pack(pusher->settings, profile, &body) : -ENOMEM;

	*ret_answer = (struct push_answer){ .nr_bytes = body.size };
	return err ? err : send_body(pusher, &body, answer, ret_answer);
}
