/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint: where profiles go, as a user writes it. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define ENDPOINT_URL_BYTES 1024

struct endpoint {
	char url[ENDPOINT_URL_BYTES]; /* of http or https, with the path */
	bool is_grpc;
};

/* http://HOST[:PORT][/PATH], https://, grpc://HOST[:PORT], grpcs://, or HOST[:PORT]: gRPC with TLS, but without it on loopback; `no_tls`:
 * nowhere. 0, or -EINVAL with a line. */
MUST_CHECK int otlp_endpoint_parse(const char *text, bool no_tls, struct endpoint *ret_endpoint, struct diag *diag);
/* grpc://HOST[:PORT], grpcs://, or HOST[:PORT], likewise; the calls' paths are added. 0, or -EINVAL with a line. */
MUST_CHECK int skywalking_endpoint_parse(const char *text, bool no_tls, struct endpoint *ret_endpoint, struct diag *diag);
/* The same; with the call's path. */
MUST_CHECK int parca_endpoint_parse(const char *text, bool no_tls, struct endpoint *ret_endpoint, struct diag *diag);
/* http://HOST[:PORT] or https://: the query is added. 0, or -EINVAL with a line. */
MUST_CHECK int clickhouse_endpoint_parse(const char *text, struct endpoint *ret_endpoint, struct diag *diag);
/* http://HOST[:PORT][/PREFIX] or https://: the method's path is added. 0, or -EINVAL with a line. */
MUST_CHECK int pyroscope_endpoint_parse(const char *text, char ret_url[ENDPOINT_URL_BYTES], struct diag *diag);
