/* SPDX-License-Identifier: Apache-2.0 */
/* delivery: sends the windows of the agent's store to a collector, in their order, each at least once, on a thread of its own. What cannot
 * be sent yet stays in the store. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "send/post.h"

struct delivery_options { /* borrowed until delivery_end, but for `post` */
	const char *store;             /* directory */
	const char *address;           /* otlp_endpoint.h */
	bool no_tls;
	const char *const *headers;
	uint32_t nr_headers;
	const struct post_options *post;
};

/* Can this be an address? 0 or -EINVAL. */
MUST_CHECK int delivery_check(const char *address, bool no_tls, struct diag *diag);

struct delivery;
MUST_CHECK int delivery_start(const struct delivery_options *options, struct diag *diag, struct delivery **ret_delivery);
void delivery_wake(struct delivery *delivery); /* the store has a new window; from any thread */
/* Sends what is left, for some seconds at most, says what was sent and what waits, and ends the thread. Takes NULL. */
void delivery_end(struct delivery *delivery);
