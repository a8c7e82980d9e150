/* SPDX-License-Identifier: Apache-2.0 */
/* http_request: the head of an HTTP/1.x request (RFC 9112), as far as a server of a few pages needs it: GET or HEAD, and a path. Header
 * lines are not looked at, and a body is not read. Trusts nothing. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define HTTP_MAX_PATH 64

struct http_request {
	bool is_head;             /* HEAD: the answer has no body */
	char path[HTTP_MAX_PATH]; /* begins with '/'; without what follows a '?' */
};

/* True if the bytes have all of the head, up to its empty line. */
bool http_head_is_whole(const char *bytes, size_t size);
/* Reads the head's first line. 0, or the status of the answer: 400, 404 (the path is longer than any of ours), 405, 505. */
int http_request_parse(const char *bytes, size_t size, struct http_request *ret_request);
const char *http_reason(int status); /* "Not Found"; "" for those that no function here returns */
