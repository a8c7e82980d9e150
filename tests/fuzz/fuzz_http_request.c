// SPDX-License-Identifier: Apache-2.0
/* Any bytes as the head of a request. What is taken is GET or HEAD of a path that can be printed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_request request;
	const char *bytes = (const char *)data;
	size_t length;
	int status;

	if (!http_head_is_whole(bytes, size))
		return 0;
	status = http_request_parse(bytes, size, &request);
	if (status) {
		if (!*http_reason(status))
			abort();
		return 0;
	}
	length = strlen(request.path);
	if (*request.path != '/' || length >= sizeof(request.path) || strchr(request.path, '?'))
		abort();
	for (size_t i = 0; i < length; i++) {
		if (request.path[i] <= ' ' || request.path[i] > '~')
			abort();
	}
	if (size < length || memcmp(bytes, request.is_head ? "HEAD /" : "GET /", request.is_head ? 6 : 5))
		abort();
	return 0;
}
