/* SPDX-License-Identifier: Apache-2.0 */
/* push: sends a profile to a server by one request, and tells from the answer what becomes of it. What differs between servers is a
 * struct push_type. One thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "send/post.h"

enum push_result {
	PUSH_DELIVERED,
	PUSH_LATER,   /* the server is not there, is busy, does not know us, or takes no profiles: the same may be taken later */
	PUSH_REFUSED, /* this profile will never be taken */
	PUSH_TOO_LARGE, /* nor this one, but parts of it may be */
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

#define PUSH_ID_BYTES 16

struct push_profile {
	const uint8_t *id;         /* PUSH_ID_BYTES: the same at each attempt */
	const char *kind;          /* what was measured: "cpu", ... */
	const void *bytes;         /* in the format of the type */
	size_t size;
};

struct push_type {
	const char *format;        /* of the profile: sonde_format_name */
	const char *const *headers; /* of each request; NULL ends */
	bool is_http2;
	/* Makes the body of the request. `settings`: of the pusher. 0 or a negative errno. */
	int (*pack)(const void *settings, const struct push_profile *profile, struct buffer *body);
	/* Fills in the result, and text and rejected where there is something to say. */
	void (*judge)(const void *settings, const struct post_answer *answer, struct push_answer *ret_answer);
};

struct pusher { /* all borrowed */
	const struct push_type *type;
	const void *settings;          /* what the type's functions take */
	const char *url;
	const char *const *headers;    /* the user's, "name: value", up to 64; NULL ends */
	struct post_client *client;
	const volatile bool *stop;     /* as in struct post_request */
};

/* 0; -ENOMEM. */
MUST_CHECK int push(const struct pusher *pusher, const struct push_profile *profile, struct push_answer *ret_answer);

/* For types. The server's own words, or ours about its code; they go to a terminal. */
void push_say(struct push_answer *answer, const char *words, size_t size, const char *code_name, int code);
/* What an answer over HTTP means for a profile: 4xx that are about the data refuse it, other faults are of the server or the settings. */
enum push_result push_result_of_http(const struct post_answer *answer);
/* The result of a call of gRPC, and why it is not delivered; of no settings. */
void push_judge_grpc(const void *settings, const struct post_answer *answer, struct push_answer *ret_answer);
