/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_endpoint: where OTLP profiles go: http://HOST[:PORT][/PATH], https://, grpc://HOST[:PORT], grpcs://, or HOST[:PORT]: gRPC with TLS,
 * but without it on loopback. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct otlp_endpoint {
	char url[1024]; /* of http or https, with the path */
	bool is_grpc;
};

/* `no_tls`: without a scheme, no TLS. 0, or -EINVAL with a line. */
MUST_CHECK int otlp_endpoint_parse(const char *text, bool no_tls, struct otlp_endpoint *ret_endpoint, struct diag *diag);
