/* SPDX-License-Identifier: Apache-2.0 */
/* grpc: messages behind their frames, and calls with messages that are all there before the call: unary ones, and streams of ours. */
#pragma once
#include "base/buffer.h"
#include "base/reader.h"
#include "send/post.h"

#define GRPC_FRAME_BYTES 5 /* 1 if the message is packed, its length as 32 bits big-endian */

/* Status codes. */
enum grpc_status { GRPC_OK, GRPC_CANCELLED, GRPC_UNKNOWN, GRPC_INVALID, GRPC_DEADLINE, GRPC_DENIED = 7, GRPC_EXHAUSTED, GRPC_FAILED,
		   GRPC_ABORTED, GRPC_RANGE, GRPC_UNIMPLEMENTED, GRPC_INTERNAL, GRPC_UNAVAILABLE, GRPC_DATA_LOSS, GRPC_UNAUTHENTICATED };

/* Begins a message of a call's body; returns what grpc_close takes. Errors are the buffer's. */
size_t grpc_open(struct buffer *body);
void grpc_close(struct buffer *body, size_t opened, bool is_packed);

/* Does the answer have a status of gRPC? Else there is something else behind the address. */
bool grpc_is_answer(const struct post_answer *answer);
/* Does the answer say that this message will never be taken? Else it may be later. */
bool grpc_is_refusal(const struct post_answer *answer);
/* Does it say that the message is refused for its size? */
bool grpc_is_too_large(const struct post_answer *answer);
/* Seconds to wait, rounded up, by the header Retry-After or google.rpc.RetryInfo; 0: the server does not say. */
uint32_t grpc_retry_after_s(const struct post_answer *answer);
/* The first message of an answer that is OK; borrowed. Empty if there is none, or if it is packed, which we do not accept. */
struct reader grpc_message(const struct post_answer *answer);

struct grpc_call {
	const char *url;                 /* http://HOST:PORT/package.Service/Method */
	const char *const *headers;      /* beside those of gRPC: "name: value", up to GRPC_MAX_HEADERS; NULL ends */
	const struct buffer *body;
	const volatile bool *stop;       /* as in struct post_request */
	bool is_packed;                  /* its messages are gzipped */
};
#define GRPC_MAX_HEADERS 72

/* post_send with the headers of gRPC. 0: there is an answer, whatever it says; else as post_send. */
MUST_CHECK int grpc_send(struct post_client *client, const struct grpc_call *call, struct post_answer *ret_answer, struct diag *diag);
/* 0: the answer is OK; -EPROTO: it is another, or none of gRPC, or longer than a struct post_answer, and `diag` has its words; else as
 * grpc_send, and -EIO also where the server says that it is not there (UNAVAILABLE). */
MUST_CHECK int grpc_call(struct post_client *client, const struct grpc_call *call, struct post_answer *ret_answer, struct diag *diag);
