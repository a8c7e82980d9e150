// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_rpc.h"

#include <errno.h>
#include <stdio.h>

#include "send/grpc.h"

#define MAX_MESSAGE_BYTES ((size_t)16 << 20)

int sky_rpc_stream(struct sky_rpc *rpc, const char *method, const struct buffer *body, struct diag *diag)
{
	char url[1280];
	const struct grpc_call call = { .url = url, .headers = rpc->headers, .body = body, .stop = rpc->stop };

	if (body->err)
		return body->err;
	snprintf(url, sizeof(url), "%s%s", rpc->url, method);
	return grpc_call(rpc->client, &call, rpc->answer, diag);
}

int sky_rpc_call(struct sky_rpc *rpc, const char *method, const struct buffer *message, struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer body = BUFFER_INIT(MAX_MESSAGE_BYTES);
	size_t opened = grpc_open(&body);

	if (message->err)
		return message->err;
	buffer_append(&body, message->data, message->size);
	grpc_close(&body, opened, false);
	return sky_rpc_stream(rpc, method, &body, diag);
}

struct reader sky_rpc_message(const struct sky_rpc *rpc)
{
	return grpc_message(rpc->answer);
}
