// SPDX-License-Identifier: Apache-2.0
#include "serve/http_request.h"

#include <string.h>

#include "base/cleanup.h"

#define VERSION "HTTP/1."

/* A line ends with a line feed, with or without a carriage return before it (RFC 9112, section 2.2). */
bool http_head_is_whole(const char *bytes, size_t size)
{
	for (size_t i = 0; i + 1 < size; i++) {
		if (bytes[i] == '\n' && (bytes[i + 1] == '\n' || (bytes[i + 1] == '\r' && i + 2 < size && bytes[i + 2] == '\n')))
			return true;
	}
	return false;
}

static bool is_method(const char *line, size_t size, const char *method)
{
	return size == strlen(method) && !memcmp(line, method, size);
}

static int check_method(const char *line, size_t size, bool *ret_is_head)
{
	if (!size)
		return 400;
	for (size_t i = 0; i < size; i++) {
		if (line[i] < 'A' || line[i] > 'Z')
			return 400;
	}
	*ret_is_head = is_method(line, size, "HEAD");
	return *ret_is_head || is_method(line, size, "GET") ? 0 : 405;
}

static int check_version(const char *version, size_t size)
{
	size_t known = strlen(VERSION);

	if (size != known + 1 || memcmp(version, "HTTP/", strlen("HTTP/")) != 0)
		return 400;
	return memcmp(version, VERSION, known) || version[known] < '0' || version[known] > '9' ? 505 : 0;
}

static int take_path(const char *target, size_t size, char path[HTTP_MAX_PATH])
{
	const char *query = memchr(target, '?', size);
	size_t length = query ? (size_t)(query - target) : size;

	if (!size || *target != '/')
		return 400;
	for (size_t i = 0; i < size; i++) {
		if (target[i] <= ' ' || target[i] > '~')
			return 400;
	}
	if (length >= HTTP_MAX_PATH)
		return 404;
	memcpy(path, target, length);
	path[length] = '\0';
	return 0;
}

int http_request_parse(const char *bytes, size_t size, struct http_request *ret_request)
{
	struct http_request request = { 0 };
	const char *end = memchr(bytes, '\n', size), *target, *version;
	int status;

	if (end && end > bytes && end[-1] == '\r')
		end--;
	target = end ? memchr(bytes, ' ', (size_t)(end - bytes)) : NULL;
	version = target ? memrchr(target + 1, ' ', (size_t)(end - target - 1)) : NULL;
	if (!version)
		return 400;
	status = check_version(version + 1, (size_t)(end - version - 1));
	if (!status)
		status = check_method(bytes, (size_t)(target - bytes), &request.is_head);
	if (!status)
		status = take_path(target + 1, (size_t)(version - target - 1), request.path);
	if (!status)
		*ret_request = request;
	return status;
}

const char *http_reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} reasons[] = { { 200, "OK" },
			{ 400, "Bad Request" },
			{ 404, "Not Found" },
			{ 405, "Method Not Allowed" },
			{ 431, "Request Header Fields Too Large" },
			{ 500, "Internal Server Error" },
			{ 503, "Service Unavailable" },
			{ 505, "HTTP Version Not Supported" } };

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		if (reasons[i].status == status)
			return reasons[i].text;
	}
	return "";
}
