// SPDX-License-Identifier: Apache-2.0
#include "send/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct endpoint_kind endpoint_otlp = {
	.grpc_port = ":4317",
	.grpc_path = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
	.http_port = ":4318",
	.http_path = "/v1development/profiles",
};
const struct endpoint_kind endpoint_skywalking = { .grpc_port = ":11800", .grpc_path = "" };

static const struct scheme {
	const char *text;
	bool is_grpc, has_tls;
} schemes[] = { { "http://", false, false }, { "https://", false, true }, { "grpc://", true, false }, { "grpcs://", true, true } };

static bool is_loopback(const char *host, size_t length)
{
	static const char *const names[] = { "localhost", "[::1]" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t size = strlen(names[i]);

		if (length >= size && !memcmp(host, names[i], size) && (length == size || host[size] == ':'))
			return true;
	}
	return length > 4 && !memcmp(host, "127.", 4) && strspn(host, "0123456789.:") >= length;
}

/* HOST or HOST:PORT, of the letters that they may have. */
static bool is_authority(const char *text, size_t length)
{
	static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";

	return length && *text != ':' && strspn(text, known) >= length;
}

static bool has_port(const char *text, size_t length)
{
	const char *bracket = memchr(text, ']', length), *from = bracket ? bracket : text;

	return memchr(from, ':', length - (size_t)(from - text));
}

int endpoint_parse(const char *text, bool no_tls, const struct endpoint_kind *kind, struct endpoint *ret_endpoint, struct diag *diag)
{
	struct scheme scheme = { "", true, false };
	const char *host = text, *path;
	size_t length;
	int size;

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (!strncmp(text, schemes[i].text, strlen(schemes[i].text)))
			scheme = schemes[i];
	}
	host += strlen(scheme.text);
	length = strcspn(host, "/");
	path = host + length;
	if (memchr(host, '@', length))
		return diag_errno(diag, EINVAL, "no passwords in an address: give them as a header");
	if (!is_authority(host, length) || strpbrk(path, " \t\r\n\"<>?#") || (scheme.is_grpc && path[0] && path[1]) ||
	    (!scheme.is_grpc && !kind->http_path))
		return diag_errno(diag, EINVAL, "'%.200s' is no address: %sgrpc://, grpcs:// or HOST:PORT", text,
				  kind->http_path ? "http://HOST:PORT, https://, " : "");
	if (!*scheme.text)
		scheme.has_tls = !no_tls && !is_loopback(host, length);
	size = snprintf(ret_endpoint->url, sizeof(ret_endpoint->url), "%s://%.*s%s%s", scheme.has_tls ? "https" : "http", (int)length, host,
			has_port(host, length) ? "" : scheme.is_grpc ? kind->grpc_port : kind->http_port,
			scheme.is_grpc ? kind->grpc_path : path[0] && path[1] ? path : kind->http_path);
	ret_endpoint->is_grpc = scheme.is_grpc;
	return size > 0 && (size_t)size < sizeof(ret_endpoint->url) ? 0 : diag_errno(diag, EINVAL, "the address is too long");
}
