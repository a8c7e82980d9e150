/* SPDX-License-Identifier: Apache-2.0 */
/* http_server: a few pages over HTTP/1.1, on a thread of its own. Written for clients that mean harm: a head of 4 KiB at most, no bodies,
 * one request per connection, 5 s from its start to its end, and a number of connections at most: for a new one the oldest is closed. So
 * nobody can make it wait, or grow. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"

#define HTTP_SERVER_MAX_LISTENERS 4

struct http_page {
	int status;         /* 200 unless the callback sets it */
	const char *type;   /* of the content; text unless the callback sets it; lives for ever */
	struct buffer body; /* empty at first */
};

struct http_server;
struct http_server_options {
	int listeners[HTTP_SERVER_MAX_LISTENERS]; /* that do not block; borrowed until http_server_end */
	size_t nr_listeners;
	/* Makes the page, on the server's thread. False: there is no such page. */
	bool (*page)(void *arg, const char *path, struct http_page *page);
	void *arg;
};

MUST_CHECK int http_server_start(const struct http_server_options *options, struct diag *diag, struct http_server **ret_server);
void http_server_end(struct http_server *server); /* takes NULL */
