// SPDX-License-Identifier: Apache-2.0
#include "send/grpc.h"

#include <errno.h>
#include <string.h>

#include "codec/base64.h"
#include "codec/protobuf_read.h"
#include "send/mentions.h"

#define WORDS 300 /* of the server, that are kept */

size_t grpc_open(struct buffer *body)
{
	size_t opened = body->size;

	buffer_reserve(body, GRPC_FRAME_BYTES);
	return opened;
}

void grpc_close(struct buffer *body, size_t opened, bool is_packed)
{
	uint8_t *frame;

	if (body->err)
		return;
	frame = (uint8_t *)body->data + opened;
	frame[0] = is_packed;
	for (int i = 0; i < 4; i++)
		frame[1 + i] = (uint8_t)((body->size - opened - GRPC_FRAME_BYTES) >> (24 - 8 * i));
}

bool grpc_is_answer(const struct post_answer *answer)
{
	return answer->status == 200 && answer->grpc_status != POST_NO_GRPC_STATUS;
}

/* --- when to come back (google/rpc/status.proto, error_details.proto; google/protobuf/any.proto, duration.proto) ---------------------- */

enum { STATUS_DETAILS = 3 };
enum { ANY_TYPE = 1, ANY_VALUE };
enum { RETRY_INFO_DELAY = 1 };
enum { DURATION_SECONDS = 1, DURATION_NANOS };

/* The first field of this number; false: there is none. */
static bool find_field(struct reader message, uint32_t number, struct protobuf_field *ret_field)
{
	while (protobuf_next(&message, ret_field)) {
		if (ret_field->number == number)
			return true;
	}
	return false;
}

static bool is_retry_info(struct reader any)
{
	static const char name[] = "/google.rpc.RetryInfo";
	const size_t length = strlen(name);
	struct protobuf_field type;

	return find_field(any, ANY_TYPE, &type) && reader_left(&type.bytes) >= length && !memcmp(type.bytes.end - length, name, length);
}

static uint32_t seconds_of(struct reader retry_info)
{
	struct protobuf_field delay, seconds, nanos;
	uint64_t sum;

	if (!find_field(retry_info, RETRY_INFO_DELAY, &delay))
		return 0;
	sum = find_field(delay.bytes, DURATION_SECONDS, &seconds) ? seconds.value : 0;
	if (sum > INT64_MAX) /* negative */
		return 0;
	sum += find_field(delay.bytes, DURATION_NANOS, &nanos) && nanos.value;
	return sum < POST_MAX_RETRY_S ? (uint32_t)sum : POST_MAX_RETRY_S;
}

/* False: there is none. */
static bool read_retry_info(const struct post_answer *answer, uint32_t *ret_seconds)
{
	uint8_t bytes[sizeof(answer->grpc_details)];
	struct protobuf_field field, value;
	struct reader status;
	size_t size;

	if (base64_read(answer->grpc_details, bytes, sizeof(bytes), &size))
		return false;
	status = reader_of(bytes, size);
	while (protobuf_next(&status, &field)) {
		if (field.number == STATUS_DETAILS && is_retry_info(field.bytes)) {
			*ret_seconds = find_field(field.bytes, ANY_VALUE, &value) ? seconds_of(value.bytes) : 0;
			return true;
		}
	}
	return false;
}

uint32_t grpc_retry_after_s(const struct post_answer *answer)
{
	uint32_t seconds = 0;

	return read_retry_info(answer, &seconds) && seconds > answer->retry_after_s ? seconds : answer->retry_after_s;
}

/* --- what a status means -------------------------------------------------------------------------------------------------------------- */

bool grpc_is_too_large(const struct post_answer *answer)
{
	/* of gRPC for Go, C and Python; Java and .NET; Rust */
	static const char *const sizes[] = { "larger than max", "too large", "exceeds", NULL };
	uint32_t seconds;

	if (!grpc_is_answer(answer) || !mentions(answer->grpc_message, sizes))
		return false;
	/* of its limit for a message; or of its memory or rate, which pass */
	if (answer->grpc_status == GRPC_EXHAUSTED)
		return !read_retry_info(answer, &seconds);
	return answer->grpc_status == GRPC_RANGE;
}

bool grpc_is_refusal(const struct post_answer *answer)
{
	static const char *const forms[] = { "unmarshal", "wireType", "proto:", NULL };

	if (!grpc_is_answer(answer))
		return false;
	switch (answer->grpc_status) {
	case GRPC_EXHAUSTED:
		return grpc_is_too_large(answer);
	case GRPC_INTERNAL:
		return mentions(answer->grpc_message, forms);
	case GRPC_INVALID:
	case GRPC_FAILED:
	case GRPC_RANGE:
	case GRPC_DATA_LOSS:
		return true;
	default:
		return false;
	}
}

struct reader grpc_message(const struct post_answer *answer)
{
	struct reader frame = reader_of(answer->body, answer->size);
	bool is_packed = reader_u8(&frame);
	size_t size = 0;

	for (int i = 0; i < 4; i++)
		size = size << 8 | reader_u8(&frame);
	return is_packed || frame.bad ? reader_of("", 0) : reader_sub(&frame, size);
}

int grpc_send(struct post_client *client, const struct grpc_call *call, struct post_answer *ret_answer, struct diag *diag)
{
	const char *headers[GRPC_MAX_HEADERS + 5] = { "content-type: application/grpc+proto", "te: trailers", "expect:" };
	struct post_request request = { .url = call->url,
					.headers = headers,
					.body = call->body->data,
					.size = call->body->size,
					.is_http2 = true,
					.stop = call->stop };
	uint32_t nr = 3;

	if (call->is_packed)
		headers[nr++] = "grpc-encoding: gzip";
	for (const char *const *header = call->headers; *header && nr < ARRAY_SIZE(headers) - 1; header++)
		headers[nr++] = *header;
	return post_send(client, &request, ret_answer, diag);
}

int grpc_call(struct post_client *client, const struct grpc_call *call, struct post_answer *ret_answer, struct diag *diag)
{
	int err = grpc_send(client, call, ret_answer, diag);

	if (err)
		return err;
	if (!grpc_is_answer(ret_answer))
		return diag_errno(diag, ret_answer->status / 100 == 5 ? EIO : EPROTO, "HTTP %d: no gRPC there", ret_answer->status);
	if (ret_answer->grpc_status == GRPC_OK && ret_answer->size == sizeof(ret_answer->body))
		return diag_errno(diag, EPROTO, "the answer is longer than %zu bytes", sizeof(ret_answer->body) - 1);
	if (ret_answer->grpc_status == GRPC_OK)
		return 0;
	return diag_errno(diag, ret_answer->grpc_status == GRPC_UNAVAILABLE ? EIO : EPROTO, "gRPC status %d: %.*s",
			  ret_answer->grpc_status, WORDS, ret_answer->grpc_message);
}
