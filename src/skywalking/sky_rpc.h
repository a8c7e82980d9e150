/* SPDX-License-Identifier: Apache-2.0 */
/* sky_rpc: calls of SkyWalking's server. One thread. */
#pragma once
#include <stdbool.h>

#include "base/buffer.h"
#include "send/post.h"

#define SKY_REPORT	"/skywalking.v3.EBPFProcessService/reportProcesses"
#define SKY_KEEP_ALIVE	"/skywalking.v3.EBPFProcessService/keepAlive"
#define SKY_TASKS	"/skywalking.v3.EBPFProfilingService/queryTasks"
#define SKY_RECORDS	"/skywalking.v3.EBPFProfilingService/collectProfilingData"
#define SKY_POLICIES	"/skywalking.v3.ContinuousProfilingService/queryPolicies"
#define SKY_TRIGGER	"/skywalking.v3.ContinuousProfilingService/reportProfilingTask"

struct sky_rpc {
	struct post_client *client;
	const char *url;             /* http://HOST:PORT; borrowed */
	const char *const *headers;  /* NULL ends; borrowed */
	const volatile bool *stop;
	struct post_answer *answer;  /* of the last call */
};

/* Sends messages behind their frames (send/grpc.h). 0: sky_rpc_message has the answer; else as grpc_call. */
MUST_CHECK int sky_rpc_stream(struct sky_rpc *rpc, const char *method, const struct buffer *body, struct diag *diag);
/* Sends one message. */
MUST_CHECK int sky_rpc_call(struct sky_rpc *rpc, const char *method, const struct buffer *message, struct diag *diag);
struct reader sky_rpc_message(const struct sky_rpc *rpc); /* borrowed until the next call */
