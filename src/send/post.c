// SPDX-License-Identifier: Apache-2.0
#include "send/post.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/number.h"
#include "curl/curl_api.h"

#define CONNECT_MS 10000

struct post_client {
	struct curl_api curl;
	void *easy;
	char reason[CURL_ERROR_BYTES];
};

void post_client_free(struct post_client *client)
{
	if (!client)
		return;
	if (client->easy)
		client->curl.easy_cleanup(client->easy);
	free(client);
}

static void post_client_freep(struct post_client **client)
{
	post_client_free(*client);
}

static int set_files(const struct post_client *client, const struct post_options *options)
{
	const struct curl_api *curl = &client->curl;
	int code = 0;

	if (options->authorities)
		code = curl->easy_setopt(client->easy, CURL_CAINFO, options->authorities);
	if (!code && options->certificate)
		code = curl->easy_setopt(client->easy, CURL_SSLCERT, options->certificate);
	if (!code && options->key)
		code = curl->easy_setopt(client->easy, CURL_SSLKEY, options->key);
	return code;
}

static int load(struct post_client *client, struct diag *diag)
{
	int err = curl_api_load(&client->curl);

	if (err)
		return diag_errno(diag, -err, "libcurl is %s: install it (Debian: libcurl4)", err == -ELIBACC ? "not here" : "too old");
	client->easy = client->curl.global_init(CURL_GLOBAL_ALL) ? NULL : client->curl.easy_init();
	return client->easy ? 0 : -ENOMEM;
}

int post_client_new(const struct post_options *options, struct diag *diag, struct post_client **ret_client)
{
	CLEANUP(post_client_freep) struct post_client *client = calloc(1, sizeof(*client));
	int err = client ? load(client, diag) : -ENOMEM, code;

	if (err)
		return err;
	code = set_files(client, options);
	if (code)
		return diag_errno(diag, EINVAL, "cannot set up TLS: %s", client->curl.easy_strerror(code));
	client->curl.easy_setopt(client->easy, CURL_ERRORBUFFER, client->reason);
	client->curl.easy_setopt(client->easy, CURL_NOSIGNAL, 1L);
	client->curl.easy_setopt(client->easy, CURL_PROTOCOLS, (long)(CURL_PROTOCOL_HTTP | CURL_PROTOCOL_HTTPS));
	client->curl.easy_setopt(client->easy, CURL_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	client->curl.easy_setopt(client->easy, CURL_TIMEOUT_MS, (long)options->timeout_s * 1000);
	client->curl.easy_setopt(client->easy, CURL_USERAGENT, "sonde");
	client->curl.easy_setopt(client->easy, CURL_POST, 1L);
	client->curl.easy_setopt(client->easy, CURL_NOPROGRESS, 0L);
	*ret_client = MOVE(client);
	return 0;
}

/* --- what the server says ------------------------------------------------------------------------------------------------------------- */

/* What is beyond the room is read and dropped, so that the connection can be kept. */
static size_t take_body(char *bytes, size_t one, size_t nr, void *arg)
{
	struct post_answer *answer = arg;
	size_t room = sizeof(answer->body) - answer->size;

	memcpy(answer->body + answer->size, bytes, nr < room ? nr : room);
	answer->size += nr < room ? nr : room;
	return nr;
}

/* If the line is this header: copies its value, without blanks around it. */
static bool is_header(const char *line, size_t size, const char *name, char *value, size_t value_bytes)
{
	size_t length = strlen(name);

	if (size <= length || line[length] != ':' || strncasecmp(line, name, length) != 0)
		return false;
	line += length + 1;
	size -= length + 1;
	while (size && (*line == ' ' || *line == '\t'))
		line++, size--;
	while (size && strchr(" \t\r\n", line[size - 1]) && line[size - 1])
		size--;
	snprintf(value, value_bytes, "%.*s", (int)(size < value_bytes ? size : value_bytes - 1), line);
	return true;
}

/* Seconds, or a date. */
static uint32_t retry_after(const struct curl_api *curl, const char *value)
{
	uint64_t seconds;
	time_t date;

	if (!number_u64(value, POST_MAX_RETRY_S, &seconds))
		return (uint32_t)seconds;
	if (*value >= '0' && *value <= '9')
		return POST_MAX_RETRY_S; /* a number that is too large */
	date = curl->getdate(value, NULL);
	if (date <= time(NULL))
		return 0;
	return date - time(NULL) < POST_MAX_RETRY_S ? (uint32_t)(date - time(NULL)) : POST_MAX_RETRY_S;
}

struct taker {
	const struct curl_api *curl;
	struct post_answer *answer;
};

/* Headers and trailers. */
static size_t take_header(char *line, size_t one, size_t size, void *arg)
{
	const struct taker *taker = arg;
	struct post_answer *answer = taker->answer;
	char value[64];
	uint64_t number;

	if (is_header(line, size, "grpc-status", value, sizeof(value)))
		answer->grpc_status = number_u64(value, 1000, &number) ? POST_NO_GRPC_STATUS : (int)number;
	else if (is_header(line, size, "retry-after", value, sizeof(value)))
		answer->retry_after_s = retry_after(taker->curl, value);
	else if (!is_header(line, size, "grpc-message", answer->grpc_message, sizeof(answer->grpc_message)))
		is_header(line, size, "grpc-status-details-bin", answer->grpc_details, sizeof(answer->grpc_details));
	return size;
}

static int look_whether_to_stop(void *arg, int64_t down, int64_t downloaded, int64_t up, int64_t uploaded)
{
	const struct post_request *request = arg;

	return request->stop && *request->stop;
}

/* --- sending -------------------------------------------------------------------------------------------------------------------------- */

/* NULL: no memory. */
static struct curl_list *list_of(const struct curl_api *curl, const char *const *headers)
{
	struct curl_list *list = NULL;

	for (; *headers; headers++) {
		struct curl_list *longer = curl->slist_append(list, *headers);

		if (!longer) {
			curl->slist_free_all(list);
			return NULL;
		}
		list = longer;
	}
	return list;
}

static long version_of(const struct post_request *request)
{
	if (!request->is_http2)
		return CURL_VERSION_1_1;
	return strncmp(request->url, "https:", 6) ? CURL_VERSION_2_PRIOR_KNOWLEDGE : CURL_VERSION_2_TLS;
}

/* "Failed to connect to c port 1 after 12 ms: ...": the same trouble has the same words each time, so that it is said once. */
static void drop_time(char *reason)
{
	static const char before[] = " after ", behind[] = " ms";
	char *from = strstr(reason, before), *to = from ? from + strlen(before) : NULL;
	size_t digits = to ? strspn(to, "0123456789") : 0;

	if (!digits || strncmp(to + digits, behind, strlen(behind)) != 0)
		return;
	to += digits + strlen(behind);
	memmove(from, to, strlen(to) + 1);
}

static int fail(struct post_client *client, int code, struct diag *diag)
{
	const char *reason = *client->reason ? client->reason : client->curl.easy_strerror(code);

	drop_time(client->reason);
	if (code == CURL_ABORTED_BY_CALLBACK)
		return -ECANCELED;
	return diag_errno(diag, code == CURL_OUT_OF_MEMORY ? ENOMEM : EIO, "%s", reason);
}

static void set_request(const struct post_client *client, const struct post_request *request, const struct taker *taker)
{
	const struct curl_api *curl = &client->curl;

	curl->easy_setopt(client->easy, CURL_URL, request->url);
	curl->easy_setopt(client->easy, CURL_POSTFIELDS, request->body);
	curl->easy_setopt(client->easy, CURL_POSTFIELDSIZE_LARGE, (int64_t)request->size);
	curl->easy_setopt(client->easy, CURL_HTTP_VERSION, version_of(request));
	/* libcurl 7.88 fails with the second request of an HTTP/2 connection by prior knowledge ("Error in the HTTP2 framing layer"). */
	curl->easy_setopt(client->easy, CURL_FORBID_REUSE, request->is_http2 ? 1L : 0L);
	/* libcurl does not wait for trailers behind a body whose length it knows. A message of HTTP/2 has its end all the same. */
	curl->easy_setopt(client->easy, CURL_IGNORE_CONTENT_LENGTH, request->is_http2 ? 1L : 0L);
	curl->easy_setopt(client->easy, CURL_WRITEFUNCTION, take_body);
	curl->easy_setopt(client->easy, CURL_WRITEDATA, taker->answer);
	curl->easy_setopt(client->easy, CURL_HEADERFUNCTION, take_header);
	curl->easy_setopt(client->easy, CURL_HEADERDATA, taker);
	curl->easy_setopt(client->easy, CURL_XFERINFOFUNCTION, look_whether_to_stop);
	curl->easy_setopt(client->easy, CURL_XFERINFODATA, request);
}

int post_send(struct post_client *client, const struct post_request *request, struct post_answer *ret_answer, struct diag *diag)
{
	const struct taker taker = { .curl = &client->curl, .answer = ret_answer };
	struct curl_list *headers = list_of(&client->curl, request->headers);
	int64_t uploaded = 0;
	long status = 0;
	int code;

	if (!headers)
		return -ENOMEM;
	ret_answer->size = 0;
	ret_answer->grpc_status = POST_NO_GRPC_STATUS;
	*ret_answer->grpc_message = *ret_answer->grpc_details = *client->reason = '\0';
	ret_answer->retry_after_s = 0;
	set_request(client, request, &taker);
	client->curl.easy_setopt(client->easy, CURL_HTTPHEADER, headers);
	code = client->curl.easy_perform(client->easy);
	client->curl.slist_free_all(headers);
	client->curl.easy_getinfo(client->easy, CURL_INFO_RESPONSE_CODE, &status);
	client->curl.easy_getinfo(client->easy, CURL_INFO_SIZE_UPLOAD, &uploaded);
	ret_answer->status = (int)status;
	ret_answer->was_sent = (uint64_t)uploaded >= request->size;
	return code ? fail(client, code, diag) : 0;
}
