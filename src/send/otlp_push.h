/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_push: how a profile is sent to an OTLP collector, over HTTP or gRPC (unary). */
#pragma once
#include "base/diag.h"
#include "send/push.h"

struct otlp_push { /* the settings of its type */
	struct push_type type;
	uint32_t compression, version; /* numbers of the names below */
};

/* Names of compressions, and of versions of opentelemetry-proto, of which 1.10 is also right for what came since. NULL ends. */
const char *otlp_compression_at(uint32_t i);
const char *otlp_version_at(uint32_t i);
/* NULL: the first of each. 0, or -EINVAL with a line. */
MUST_CHECK int otlp_push_init(struct otlp_push *push, bool is_grpc, const char *compression, const char *version, struct diag *diag);
