/* SPDX-License-Identifier: Apache-2.0 */
/* sky_client: the agent's side of SkyWalking: a thread that reports processes to its OAP server, takes profiling tasks from it, and sends
 * what they sampled. docs/internals/skywalking.md */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "send/endpoint.h"
#include "send/post.h"
#include "skywalking/sky_names.h"

struct sky_options {                 /* borrowed until sky_client_end, but for `endpoint` and `post` */
	const char *address;         /* as it was given, for messages */
	const struct endpoint *endpoint;
	const struct post_options *post;
	const char *const *headers;
	uint32_t nr_headers;         /* up to SKY_MAX_HEADERS */
	const char *authentication;  /* NULL: none */
	const char *period;          /* of ON_CPU tasks: "9ms" */
	struct sky_names names;
	uint64_t heartbeat_ns, check_ns, flush_ns;
};
#define SKY_MAX_HEADERS 64

struct sky_client;
MUST_CHECK int sky_client_start(const struct sky_options *options, struct diag *diag, struct sky_client **ret_client);
/* Ends the tasks, sends their last windows, for some seconds at most, and ends the thread. Takes NULL. */
void sky_client_end(struct sky_client *client);
