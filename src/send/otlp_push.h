/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_push: how a profile is sent to an OTLP collector, over HTTP or gRPC (unary, opentelemetry-proto 1.10 and newer), gzipped. They need
 * no settings. */
#pragma once
#include "send/push.h"

extern const struct push_type otlp_http, otlp_grpc;
