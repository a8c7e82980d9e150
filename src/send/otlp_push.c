// SPDX-License-Identifier: Apache-2.0
#include "send/otlp_push.h"

#include <stdio.h>
#include <string.h>

#include "base/plain_text.h"
#include "codec/gzip.h"
#include "codec/protobuf_read.h"
#include "send/grpc.h"

#define MAX_WORDS     300 /* of the server, that are kept */

/* ExportProfilesServiceResponse. */
enum { RESPONSE_PARTIAL = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE };

static int pack_http(const void *settings, const struct push_profile *profile, struct buffer *body)
{
	return gzip(profile->bytes, profile->size, GZIP_SMALL, body);
}

/* Behind its frame. */
static int pack_grpc(const void *settings, const struct push_profile *profile, struct buffer *body)
{
	size_t opened = grpc_open(body);
	int err = gzip(profile->bytes, profile->size, GZIP_SMALL, body);

	if (!err)
		grpc_close(body, opened, true);
	return err;
}

/* --- answers -------------------------------------------------------------------------------------------------------------------------- */

static void copy_words(char *to, size_t room, const char *words, size_t size)
{
	snprintf(to, room, "%.*s", (int)(size < MAX_WORDS ? size : MAX_WORDS), words);
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

static void judge_grpc(const struct post_answer *answer, struct push_answer *ret_answer)
{
	static const char wrong_version[] = "; it may be of another version: profiles are sent as of opentelemetry-proto 1.10";
	size_t length;

	push_judge_grpc(answer, ret_answer);
	if (ret_answer->result == PUSH_DELIVERED)
		read_response(grpc_message(answer), ret_answer);
	if (ret_answer->result == PUSH_DELIVERED || !grpc_is_answer(answer))
		return;
	length = strlen(ret_answer->text);
	if (answer->grpc_status == GRPC_INTERNAL && ret_answer->result == PUSH_REFUSED)
		snprintf(ret_answer->text + length, sizeof(ret_answer->text) - length, "%s", wrong_version);
	else if (answer->grpc_status == GRPC_UNIMPLEMENTED)
		snprintf(ret_answer->text + length, sizeof(ret_answer->text) - length,
			 "; it takes no profiles: a Collector needs --feature-gates=service.profilesSupport");
}

static void judge_http(const struct post_answer *answer, struct push_answer *ret_answer)
{
	ret_answer->result = push_result_of_http(answer);
	if (ret_answer->result == PUSH_DELIVERED)
		read_response(reader_of(answer->body, answer->size), ret_answer);
	else
		push_say(ret_answer, answer->body, strnlen(answer->body, answer->size), "HTTP", answer->status);
}

const struct push_type otlp_http = {
	.format = "otlp",
	.headers = (const char *const[]){ "content-type: application/x-protobuf", "content-encoding: gzip", "expect:", NULL },
	.pack = pack_http,
	.judge = judge_http,
};

const struct push_type otlp_grpc = {
	.format = "otlp",
	.headers = (const char *const[]){ "content-type: application/grpc+proto", "te: trailers", "grpc-encoding: gzip", "expect:", NULL },
	.is_http2 = true,
	.pack = pack_grpc,
	.judge = judge_grpc,
};
