/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint: the address of a server: http://HOST[:PORT][/PATH], https://, grpc://HOST[:PORT], grpcs://, or HOST[:PORT]: gRPC with TLS, but
 * without it on loopback. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct endpoint_kind { /* what an address does not say. NULL for HTTP: there is gRPC alone */
	const char *grpc_port, *grpc_path, *http_port, *http_path;
};
extern const struct endpoint_kind endpoint_otlp;
extern const struct endpoint_kind endpoint_skywalking; /* its paths are the calls' */

struct endpoint {
	char url[1024]; /* of http or https, with the path */
	bool is_grpc;
};

/* `no_tls`: without a scheme, no TLS. 0, or -EINVAL with a line. */
MUST_CHECK int endpoint_parse(const char *text, bool no_tls, const struct endpoint_kind *kind, struct endpoint *ret_endpoint,
			      struct diag *diag);
