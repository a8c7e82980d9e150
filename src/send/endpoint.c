// SPDX-License-Identifier: Apache-2.0
#include "send/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PYROSCOPE_PATH	"/push.v1.PusherService/Push"
#define CLICKHOUSE_PORT ":8123"
#define CLICKHOUSE_PATH "/?query=INSERT%20INTO%20sonde.lines%20FORMAT%20LineAsString"

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

/* What must not be in an address: a password, which others would see, and what is no part of it. */
static int check(const char *text, const char *host, size_t length, const char *option, const char *forms, struct diag *diag)
{
	if (memchr(host, '@', length))
		return diag_errno(diag, EINVAL, "no passwords in an address: give them by --%s", option);
	if (!is_authority(host, length) || strpbrk(host + length, " \t\r\n\"<>?#"))
		return diag_errno(diag, EINVAL, "'%.200s' is no address: %s", text, forms);
	return 0;
}

/* What an address that does not say it goes to. */
struct places {
	const char *option, *forms;
	const char *grpc_port, *grpc_path, *http_port, *http_path; /* NULL: it does not speak that */
};

static int parse(const char *text, bool no_tls, const struct places *places, struct endpoint *ret_endpoint, struct diag *diag)
{
	struct scheme scheme = { "", true, false };
	const char *host = text, *path;
	size_t length;
	int size, err;

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (!strncmp(text, schemes[i].text, strlen(schemes[i].text)))
			scheme = schemes[i];
	}
	host += strlen(scheme.text);
	length = strcspn(host, "/");
	path = host + length;
	err = check(text, host, length, places->option, places->forms, diag);
	if (!err && (scheme.is_grpc ? !places->grpc_path || (path[0] && path[1]) : !places->http_path))
		err = diag_errno(diag, EINVAL, "'%.200s' is no address: %s", text, places->forms);
	if (err)
		return err;
	if (!*scheme.text)
		scheme.has_tls = !no_tls && !is_loopback(host, length);
	size = snprintf(ret_endpoint->url, sizeof(ret_endpoint->url), "%s://%.*s%s%s", scheme.has_tls ? "https" : "http", (int)length, host,
			has_port(host, length) ? "" : scheme.is_grpc ? places->grpc_port : places->http_port,
			scheme.is_grpc ? places->grpc_path : path[0] && path[1] ? path : places->http_path);
	ret_endpoint->is_grpc = scheme.is_grpc;
	return size > 0 && (size_t)size < sizeof(ret_endpoint->url) ? 0 : diag_errno(diag, EINVAL, "the address is too long");
}

int otlp_endpoint_parse(const char *text, bool no_tls, struct endpoint *ret_endpoint, struct diag *diag)
{
	static const struct places places = {
		.option = "otlp-header",
		.forms = "http://HOST:PORT, https://, grpc://, grpcs:// or HOST:PORT",
		.grpc_port = ":4317",
		.grpc_path = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
		.http_port = ":4318",
		.http_path = "/v1development/profiles",
	};

	return parse(text, no_tls, &places, ret_endpoint, diag);
}

int skywalking_endpoint_parse(const char *text, bool no_tls, struct endpoint *ret_endpoint, struct diag *diag)
{
	static const struct places places = {
		.option = "skywalking-authentication",
		.forms = "grpc://HOST:PORT, grpcs:// or HOST:PORT",
		.grpc_port = ":11800",
		.grpc_path = "",
	};

	return parse(text, no_tls, &places, ret_endpoint, diag);
}

int parca_endpoint_parse(const char *text, bool no_tls, struct endpoint *ret_endpoint, struct diag *diag)
{
	static const struct places places = {
		.option = "parca-header",
		.forms = "grpc://HOST:PORT, grpcs:// or HOST:PORT",
		.grpc_port = ":7070",
		.grpc_path = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
	};

	return parse(text, no_tls, &places, ret_endpoint, diag);
}

int clickhouse_endpoint_parse(const char *text, struct endpoint *ret_endpoint, struct diag *diag)
{
	static const struct places places = {
		.option = "clickhouse-header",
		.forms = "http://HOST:PORT or https://HOST:PORT",
		.http_port = CLICKHOUSE_PORT,
		.http_path = CLICKHOUSE_PATH,
	};
	int err = parse(text, false, &places, ret_endpoint, diag);

	if (!err && (ret_endpoint->is_grpc || !strstr(ret_endpoint->url, CLICKHOUSE_PATH)))
		return diag_errno(diag, EINVAL, "'%.200s' is no address: %s", text, places.forms);
	return err;
}

int pyroscope_endpoint_parse(const char *text, char ret_url[ENDPOINT_URL_BYTES], struct diag *diag)
{
	size_t scheme = !strncmp(text, "http://", 7) ? 7 : !strncmp(text, "https://", 8) ? 8 : 0, length = strlen(text);
	const char *host = text + scheme;
	int err = check(text, host, scheme ? strcspn(host, "/") : 0, "pyroscope-header", "http://HOST:PORT or https://HOST", diag), size;

	if (err)
		return err;
	while (text[length - 1] == '/')
		length--;
	size = snprintf(ret_url, ENDPOINT_URL_BYTES, "%.*s" PYROSCOPE_PATH, (int)length, text);
	return size > 0 && size < ENDPOINT_URL_BYTES ? 0 : diag_errno(diag, EINVAL, "the address is too long");
}
