/* SPDX-License-Identifier: Apache-2.0 */
/* post: HTTP POST requests by libcurl, one at a time: HTTP/1.1 on a connection that is kept, HTTP/2, TLS, the proxies that the environment
 * names. What the server says is bounded, and never unpacked. One thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define POST_ANSWER_BYTES 65536
#define POST_NO_GRPC_STATUS (-1)
#define POST_MAX_RETRY_S 600

struct post_options { /* files in PEM; NULL: none, and the system's authorities */
	const char *authorities, *certificate, *key;
	uint32_t timeout_s; /* of a whole request */
};

struct post_client;
MUST_CHECK int post_client_new(const struct post_options *options, struct diag *diag, struct post_client **ret_client);
void post_client_free(struct post_client *client); /* takes NULL */

struct post_request {
	const char *url;
	const char *const *headers; /* "name: value"; NULL ends */
	const void *body;
	size_t size;
	bool is_http2;              /* without TLS by prior knowledge */
	const volatile bool *stop;  /* true: ends the request within a second */
};

struct post_answer {
	int status;                 /* of HTTP */
	char body[POST_ANSWER_BYTES];
	size_t size;
	int grpc_status;            /* of a header or trailer; POST_NO_GRPC_STATUS: none */
	char grpc_message[256];
	char grpc_details[2048];    /* google.rpc.Status, in base64; "": none */
	uint32_t retry_after_s;     /* up to POST_MAX_RETRY_S; 0: the server does not say */
	bool was_sent;              /* after a failure: the server may have the request */
};

/* 0: there is an answer, whatever it says; -ECANCELED: stopped; else a negative errno with the reason. */
MUST_CHECK int post_send(struct post_client *client, const struct post_request *request, struct post_answer *ret_answer, struct diag *diag);
