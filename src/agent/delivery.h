/* SPDX-License-Identifier: Apache-2.0 */
/* delivery: sends the windows of the agent's store to a destination, in their order, each at least once, on a thread of its own. What
 * cannot be sent yet stays in the store. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "send/push.h"

struct delivery_options { /* borrowed until delivery_end, but for `headers` and `post` */
	const char *store;             /* directory */
	const char *name;              /* of the destination, in the store and in messages */
	const struct push_type *type;
	const void *settings;          /* of the type */
	const char *url;
	const char *const *headers;    /* "name: value" */
	uint32_t nr_headers;           /* OPTION_MAX_TEXTS at most */
	const struct post_options *post;
};

/* Since the agent began. */
struct delivery_numbers {
	uint64_t nr_sent, nr_bytes, nr_refused, nr_rejected, nr_retries, nr_repeats; /* of messages */
	uint64_t nr_split;     /* windows that were too large, and were sent in several messages */
	uint64_t last_unix_ns; /* when a profile was taken; 0: none yet */
	char trouble[512];     /* told once, until it changes; "": none */
};

struct delivery;
MUST_CHECK int delivery_start(const struct delivery_options *options, struct diag *diag, struct delivery **ret_delivery);
const char *delivery_name(const struct delivery *delivery);
void delivery_numbers(struct delivery *delivery, struct delivery_numbers *ret_numbers); /* any thread */
void delivery_wake(struct delivery *delivery); /* the store has a new window; from any thread */
/* No more windows come: from now on it sends what is left, for so long at most. */
void delivery_finish(struct delivery *delivery, uint32_t seconds);
/* After delivery_finish: waits for that, says what was sent and what waits, and ends the thread. */
void delivery_end(struct delivery *delivery);
