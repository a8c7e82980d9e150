/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_push: sends a profile to an OTLP collector, over HTTP or gRPC (unary, opentelemetry-proto 1.10 and newer), gzipped, and tells from
 * the answer what becomes of it. One thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "send/endpoint.h"
#include "send/post.h"

enum push_result {
	PUSH_DELIVERED,
	PUSH_LATER,   /* the server is not there, is busy, does not know us, or takes no profiles: the same may be taken later */
	PUSH_REFUSED, /* this profile will never be taken */
	PUSH_STOPPED,
};

struct push_answer {
	enum push_result result;
	char text[512];            /* why not, or what a partial success lacks; else "" */
	uint64_t rejected;         /* profiles of a delivered message that the server dropped */
	uint32_t retry_after_s;    /* 0: the server does not say */
	size_t nr_bytes;           /* of the message as it was sent */
	bool may_be_repeated;      /* not delivered, but the server may have it */
};

struct otlp_pusher {
	struct post_client *client;             /* borrowed */
	const struct endpoint *endpoint;   /* borrowed */
	const char *const *headers;             /* the user's, "name: value", up to 64; NULL ends; borrowed */
	const volatile bool *stop;              /* as in struct post_request */
};

/* 0; -ENOMEM. */
MUST_CHECK int otlp_push(const struct otlp_pusher *pusher, const void *bytes, size_t size, struct push_answer *ret_answer);
/* What an answer means. For the tests. */
void otlp_judge(const struct post_answer *answer, bool is_grpc, struct push_answer *ret_answer);
