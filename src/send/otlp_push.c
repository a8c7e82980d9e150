// SPDX-License-Identifier: Apache-2.0
#include "send/otlp_push.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/plain_text.h"
#include "codec/gzip.h"
#include "codec/protobuf_read.h"
#include "codec/zstd_pack.h"
#include "send/grpc.h"
#include "send/mentions.h"

#define MAX_WORDS     300 /* of the server, that are kept */

/* ExportProfilesServiceResponse. */
enum { RESPONSE_PARTIAL = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE };

enum { GZIP, ZSTD, NONE };
static const char *const compressions[] = { [GZIP] = "gzip", [ZSTD] = "zstd", [NONE] = "none" };

enum { VERSION_1_10, VERSION_1_9, VERSION_1_8 };
static const char *const versions[] = { [VERSION_1_10] = "1.10", [VERSION_1_9] = "1.9", [VERSION_1_8] = "1.8" };
static const char *const formats[] = { [VERSION_1_10] = "otlp", [VERSION_1_9] = "otlp-1.9", [VERSION_1_8] = "otlp-1.8" };

static int compress(const struct otlp_push *push, const struct push_profile *profile, struct buffer *body)
{
	switch (push->compression) {
	case GZIP:
		return gzip(profile->bytes, profile->size, GZIP_SMALL, body);
	case ZSTD:
		return zstd_pack(profile->bytes, profile->size, body);
	}
	buffer_append(body, profile->bytes, profile->size);
	return body->err;
}

static int pack_http(const void *settings, const struct push_profile *profile, struct buffer *body)
{
	return compress(settings, profile, body);
}

/* Behind its frame. */
static int pack_grpc(const void *settings, const struct push_profile *profile, struct buffer *body)
{
	const struct otlp_push *push = settings;
	size_t opened = grpc_open(body);
	int err = compress(push, profile, body);

	if (!err)
		grpc_close(body, opened, push->compression != NONE);
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

static void advise(struct push_answer *answer, const char *option, const char *value)
{
	size_t length = strlen(answer->text);

	snprintf(answer->text + length, sizeof(answer->text) - length, "; try --%s %s", option, value);
}

/* 1.10 gave fields of Sample other numbers, 1.9 fields of Profile: a receiver of another version finds a list where it expects a number, or
 * an id where it expects a list. That, and a compression that it does not know, is a fault of the settings and not of the profile, which
 * waits. */
static void find_advice(const struct otlp_push *push, struct push_answer *answer)
{
	static const char *const others[] = { [VERSION_1_10] = "1.9 or 1.8", [VERSION_1_9] = "1.8 or 1.10", [VERSION_1_8] = "1.10 or 1.9" };
	static const char *const of_version[] = { "wireType", "wire type", "unexpected EOF", NULL }; /* of Go's and Rust's libraries */
	static const char *const of_form[] = { "unmarshal", "proto:", NULL };
	static const char *const of_compression[] = { "ncoding", "ompress", NULL };

	if (answer->result == PUSH_DELIVERED || answer->result == PUSH_TOO_LARGE)
		return;
	if (mentions(answer->text, of_version)) {
		answer->result = PUSH_LATER;
		advise(answer, "otlp-version", others[push->version]);
	} else if (push->compression != NONE && mentions(answer->text, of_compression)) {
		answer->result = PUSH_LATER;
		advise(answer, "otlp-compression", compressions[push->compression == GZIP ? NONE : GZIP]);
	} else if (mentions(answer->text, of_form)) {
		advise(answer, "otlp-version", others[push->version]);
	}
}

static void say_no_profiles(struct push_answer *answer)
{
	size_t length = strlen(answer->text);

	snprintf(answer->text + length, sizeof(answer->text) - length,
		 "; it takes no profiles: a Collector needs --feature-gates=service.profilesSupport");
}

static void judge_grpc(const void *settings, const struct post_answer *answer, struct push_answer *ret_answer)
{
	push_judge_grpc(NULL, answer, ret_answer);
	if (ret_answer->result == PUSH_DELIVERED)
		read_response(grpc_message(answer), ret_answer);
	if (!grpc_is_answer(answer))
		return;
	find_advice(settings, ret_answer);
	if (answer->grpc_status == GRPC_UNIMPLEMENTED && !strstr(ret_answer->text, "; try "))
		say_no_profiles(ret_answer);
}

static void judge_http(const void *settings, const struct post_answer *answer, struct push_answer *ret_answer)
{
	ret_answer->result = push_result_of_http(answer);
	if (ret_answer->result == PUSH_DELIVERED)
		read_response(reader_of(answer->body, answer->size), ret_answer);
	else
		push_say(ret_answer, answer->body, strnlen(answer->body, answer->size), "HTTP", answer->status);
	if (answer->status / 100 == 4)
		find_advice(settings, ret_answer);
	if (answer->status == 404)
		say_no_profiles(ret_answer);
}

/* --- settings ------------------------------------------------------------------------------------------------------------------------- */

const char *otlp_compression_at(uint32_t i)
{
	return i < ARRAY_SIZE(compressions) ? compressions[i] : NULL;
}

const char *otlp_version_at(uint32_t i)
{
	return i < ARRAY_SIZE(versions) ? versions[i] : NULL;
}

/* Of three names. */
static int find(const char *name, const char *option, const char *const *names, uint32_t *ret_number, struct diag *diag)
{
	for (uint32_t i = 0; i < 3; i++) {
		if (!name || !strcmp(names[i], name)) {
			*ret_number = i;
			return 0;
		}
	}
	return diag_errno(diag, EINVAL, "%s is one of %s, %s, %s, not '%.40s'", option, names[0], names[1], names[2], name);
}

#define HTTP_HEADERS "content-type: application/x-protobuf", "expect:"
#define GRPC_HEADERS "content-type: application/grpc+proto", "te: trailers", "expect:"

int otlp_push_init(struct otlp_push *push, bool is_grpc, const char *compression, const char *version, struct diag *diag)
{
	static const char *const of_http[][4] = { [GZIP] = { HTTP_HEADERS, "content-encoding: gzip" },
						  [ZSTD] = { HTTP_HEADERS, "content-encoding: zstd" },
						  [NONE] = { HTTP_HEADERS } };
	static const char *const of_grpc[][5] = { [GZIP] = { GRPC_HEADERS, "grpc-encoding: gzip" },
						  [ZSTD] = { GRPC_HEADERS, "grpc-encoding: zstd" },
						  [NONE] = { GRPC_HEADERS } };
	int err = find(compression, "otlp-compression", compressions, &push->compression, diag) ?:
		  find(version, "otlp-version", versions, &push->version, diag);

	if (err)
		return err;
	push->type = (struct push_type){ .format = formats[push->version],
					 .headers = is_grpc ? of_grpc[push->compression] : of_http[push->compression],
					 .is_http2 = is_grpc,
					 .pack = is_grpc ? pack_grpc : pack_http,
					 .judge = is_grpc ? judge_grpc : judge_http };
	return 0;
}
