// SPDX-License-Identifier: Apache-2.0
/* Addresses, labels, and what an answer means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "send/endpoint.h"
#include "send/otlp_push.h"
#include "send/clickhouse_push.h"
#include "send/parca_push.h"
#include "send/pyroscope_push.h"

#define GRPC "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define HTTP "/v1development/profiles"

static void addresses(void **state)
{
	static const struct {
		const char *text;
		bool no_tls;
		const char *url; /* NULL: refused */
		bool is_grpc;
	} cases[] = {
		{ "http://c", false, "http://c:4318" HTTP, false },
		{ "http://c:1/", false, "http://c:1" HTTP, false },
		{ "https://c/x/y", true, "https://c:4318/x/y", false },
		{ "grpc://c", false, "http://c:4317" GRPC, true },
		{ "grpcs://c:9/", true, "https://c:9" GRPC, true },
		{ "c:4317", false, "https://c:4317" GRPC, true },
		{ "c", true, "http://c:4317" GRPC, true },
		{ "localhost:1", false, "http://localhost:1" GRPC, true },
		{ "localhost.evil", false, "https://localhost.evil:4317" GRPC, true },
		{ "127.0.0.1", false, "http://127.0.0.1:4317" GRPC, true },
		{ "127.evil", false, "https://127.evil:4317" GRPC, true },
		{ "[::1]:1", false, "http://[::1]:1" GRPC, true },
		{ "[2001:db8::1]", false, "https://[2001:db8::1]:4317" GRPC, true },
		{ "", false, NULL, false },
		{ "http://", false, NULL, false },
		{ ":4317", false, NULL, false },
		{ "ftp://c", false, NULL, false },
		{ "http://u:p@c", false, NULL, false },
		{ "grpc://c/path", false, NULL, false },
		{ "http://c/\r\nx: y", false, NULL, false },
		{ "c d", false, NULL, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct endpoint endpoint;
		struct diag diag = { 0 };
		int err = otlp_endpoint_parse(cases[i].text, cases[i].no_tls, &endpoint, &diag);

		if (!cases[i].url) {
			assert_int_equal(err, -EINVAL);
			assert_true(*diag.text);
			continue;
		}
		assert_int_equal(err, 0);
		assert_string_equal(endpoint.url, cases[i].url);
		assert_int_equal(endpoint.is_grpc, cases[i].is_grpc);
	}
}

static struct push_answer judged(int status, int grpc_status, const char *message, const void *body, size_t size)
{
	static struct post_answer answer;
	struct push_answer result = { 0 };
	struct otlp_push otlp;

	assert_int_equal(otlp_push_init(&otlp, grpc_status != -2, NULL, NULL, NULL), 0);
	memset(&answer, 0, sizeof(answer));
	answer.status = status;
	answer.grpc_status = grpc_status;
	snprintf(answer.grpc_message, sizeof(answer.grpc_message), "%s", message);
	memcpy(answer.body, body, size);
	answer.size = size;
	otlp.type.judge(&otlp, &answer, &result);
	return result;
}

static void answers_of_grpc(void **state)
{
	static const struct {
		int status, grpc_status;
		const char *message;
		enum push_result result;
	} cases[] = {
		{ 200, 0, "", PUSH_DELIVERED },
		{ 200, 3, "bad", PUSH_REFUSED },
		{ 200, 8, "slow down", PUSH_LATER },
		{ 200, 8, "grpc: received message larger than max (9 vs. 4)", PUSH_TOO_LARGE },
		{ 200, 8, "gRPC message exceeds maximum size 4194304: 5000000", PUSH_TOO_LARGE },
		{ 200, 11, "Error, decoded message length too large: found 5 bytes, the limit is: 4 bytes", PUSH_TOO_LARGE },
		{ 200, 11, "time", PUSH_REFUSED },
		{ 200, 12, "unknown service", PUSH_LATER },
		{ 200, 13, "wrong wireType = 2 for field LinkIndex", PUSH_LATER },
		{ 200, 13, "Sample.link_index: invalid wire type: LengthDelimited (expected Varint)", PUSH_LATER },
		{ 200, 13, "grpc: error unmarshalling request: unexpected EOF", PUSH_LATER },
		{ 200, 13, "grpc: error unmarshalling request: proto: illegal", PUSH_REFUSED },
		{ 200, 12, "grpc: Decompressor is not installed for grpc-encoding \"gzip\"", PUSH_LATER },
		{ 200, 13, "panic", PUSH_LATER },
		{ 200, 14, "", PUSH_LATER },
		{ 200, 16, "who are you", PUSH_LATER },
		{ 200, 999, "", PUSH_LATER },
		{ 200, POST_NO_GRPC_STATUS, "", PUSH_LATER },
		{ 404, POST_NO_GRPC_STATUS, "", PUSH_LATER },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct push_answer answer = judged(cases[i].status, cases[i].grpc_status, cases[i].message, "", 0);

		assert_int_equal(answer.result, cases[i].result);
		assert_int_equal(!*answer.text, cases[i].result == PUSH_DELIVERED);
	}
	assert_non_null(strstr(judged(200, 13, "wrong wireType", "", 0).text, "try --otlp-version 1.9"));
	assert_non_null(strstr(judged(200, 13, "proto: illegal", "", 0).text, "try --otlp-version 1.9"));
	assert_non_null(strstr(judged(200, 12, "Decompressor is not installed", "", 0).text, "try --otlp-compression none"));
	assert_non_null(strstr(judged(200, 12, "", "", 0).text, "service.profilesSupport"));
}

static void answers_of_http(void **state)
{
	static const struct {
		int status;
		enum push_result result;
	} cases[] = { { 200, PUSH_DELIVERED }, { 202, PUSH_DELIVERED }, { 400, PUSH_REFUSED }, { 413, PUSH_TOO_LARGE }, { 401, PUSH_LATER },
		      { 404, PUSH_LATER },     { 429, PUSH_LATER },	{ 500, PUSH_LATER },   { 503, PUSH_LATER },   { 302, PUSH_LATER },
		      { 0, PUSH_LATER } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(judged(cases[i].status, -2, "", "", 0).result, cases[i].result);
	assert_int_equal(judged(400, -2, "", "proto: wrong wireType = 2", 25).result, PUSH_LATER);
	assert_int_equal(judged(400, -2, "", "unsupported Content-Encoding: gzip", 34).result, PUSH_LATER);
	assert_non_null(strstr(judged(404, -2, "", "", 0).text, "service.profilesSupport"));
	assert_int_equal(judged(400, -2, "", "\x0a\x1chttp: request body too large", 30).result, PUSH_TOO_LARGE);
	assert_string_equal(judged(503, -2, "", "go\x1b[2J away", 11).text, "HTTP 503: go?[2J away");
}

/* google.rpc.Status, made by Python's protobuf; and what RESOURCE_EXHAUSTED means with it, where the words are on a size. */
static void retry_info(void **state)
{
	static const struct {
		const char *details;
		uint32_t header_s, seconds;
		enum push_result result;
	} cases[] = {
		{ "", 0, 0, PUSH_TOO_LARGE },
		{ "", 5, 5, PUSH_TOO_LARGE },
		/* a DebugInfo, and 7 s */
		{ "CAgaLQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkRlYnVnSW5mbxIBeBowCih0eXBlLmdvb2dsZWFwaXMuY29tL2dvb2dsZS5y"
		  "cGMuUmV0cnlJbmZvEgQKAggH", 0, 7, PUSH_LATER },
		/* 2.5 s, with and without its padding */
		{ "CAgaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIAhCAyrXuAQ==", 0, 3, PUSH_LATER },
		{ "CAgaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIAhCAyrXuAQ", 9, 9, PUSH_LATER },
		/* 0 s; -1.000000005 s; 2^40 s; no delay */
		{ "CAgaLgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxICCgA=", 0, 0, PUSH_LATER },
		{ "CAgaRAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIYChYI////////////ARD7//////////8B", 0, 0, PUSH_LATER },
		{ "CAgaNQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIJCgcIgICAgIAg", 0, POST_MAX_RETRY_S, PUSH_LATER },
		{ "CAgaKgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbw==", 0, 0, PUSH_LATER },
		/* another type, 9 s of another type, no base64 */
		{ "CAgaLQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkRlYnVnSW5mbxIBeA==", 0, 0, PUSH_TOO_LARGE },
		{ "CAgaHwoXYS9nb29nbGUucnBjLlJldHJ5SW5mb1gSBAoCCAk=", 0, 0, PUSH_TOO_LARGE },
		{ "CAga*woX", 0, 0, PUSH_TOO_LARGE },
		{ "A", 0, 0, PUSH_TOO_LARGE },
	};
	static struct post_answer answer = { .status = 200, .grpc_status = 8, .grpc_message = "larger than max" };
	struct otlp_push otlp;

	assert_int_equal(otlp_push_init(&otlp, true, NULL, NULL, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct push_answer result = { 0 };

		snprintf(answer.grpc_details, sizeof(answer.grpc_details), "%s", cases[i].details);
		answer.retry_after_s = cases[i].header_s;
		otlp.type.judge(&otlp, &answer, &result);
		assert_int_equal(result.result, cases[i].result);
		assert_int_equal(result.retry_after_s, cases[i].seconds);
	}
}

static void settings_of_otlp(void **state)
{
	struct otlp_push push;
	struct diag diag = { 0 };

	assert_int_equal(otlp_push_init(&push, true, "zstd", "1.9", NULL), 0);
	assert_string_equal(push.type.format, "otlp-1.9");
	assert_string_equal(push.type.headers[3], "grpc-encoding: zstd");
	assert_int_equal(otlp_push_init(&push, false, "none", "1.10", NULL), 0);
	assert_string_equal(push.type.format, "otlp");
	assert_null(push.type.headers[2]);
	assert_int_equal(otlp_push_init(&push, false, "lz4", NULL, &diag), -EINVAL);
	assert_string_equal(diag.text, "otlp-compression is one of gzip, zstd, none, not 'lz4'");
	diag = (struct diag){ 0 };
	assert_int_equal(otlp_push_init(&push, false, NULL, "1.7", &diag), -EINVAL);
	assert_string_equal(diag.text, "otlp-version is one of 1.10, 1.9, 1.8, not '1.7'");
}

/* partial_success { rejected_profiles: 3, error_message: "no" }, behind a frame of gRPC. */
static void partial_success(void **state)
{
	static const uint8_t body[] = { 0, 0, 0, 0, 8, 0x0a, 6, 0x08, 3, 0x12, 2, 'n', 'o' };
	struct push_answer answer = judged(200, 0, "", body, sizeof(body));

	assert_int_equal(answer.result, PUSH_DELIVERED);
	assert_int_equal(answer.rejected, 3);
	assert_string_equal(answer.text, "no");
	for (size_t size = 0; size < sizeof(body); size++) /* cut off anywhere */
		assert_int_equal(judged(200, 0, "", body, size).result, PUSH_DELIVERED);
	for (uint32_t seed = 1; seed < 2000; seed++) { /* and anything */
		uint8_t noise[64] = { 0 };

		for (size_t i = 5; i < sizeof(noise); i++)
			noise[i] = (uint8_t)(seed * (i + 1) * 2654435761u >> 15);
		assert_int_equal(judged(200, 0, "", noise, sizeof(noise)).result, PUSH_DELIVERED);
	}
}

/* --- Pyroscope ------------------------------------------------------------------------------------------------------------------------ */

static void addresses_of_pyroscope(void **state)
{
	static const struct {
		const char *text, *url; /* NULL: refused */
	} cases[] = {
		{ "http://p:4040", "http://p:4040/push.v1.PusherService/Push" },
		{ "https://p/", "https://p/push.v1.PusherService/Push" },
		{ "https://p/a/b//", "https://p/a/b/push.v1.PusherService/Push" },
		{ "http://", NULL },
		{ "http:///x", NULL },
		{ "p:4040", NULL },
		{ "grpc://p", NULL },
		{ "http://u:p@p", NULL },
		{ "http://p/?x", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char url[ENDPOINT_URL_BYTES];
		struct diag diag = { 0 };

		assert_int_equal(pyroscope_endpoint_parse(cases[i].text, url, &diag), cases[i].url ? 0 : -EINVAL);
		if (cases[i].url)
			assert_string_equal(url, cases[i].url);
		else
			assert_true(*diag.text);
	}
}

static const char *label_of(const struct series_labels *labels, const char *name)
{
	const char *value = NULL;

	for (uint32_t i = 0; i < labels->nr; i++) {
		if (strcmp(labels->list[i].name, name) != 0)
			continue;
		assert_null(value); /* each once */
		value = labels->list[i].value;
	}
	return value;
}

static void labels_of_pyroscope(void **state)
{
	static const char *const bad[] = { "", "a", "a=", "=b", "1a=b", "a-b=c", "a.b=c",
					   "a23456789012345678901234567890123456789012345678901234567890abcd=1" };
	const char *const texts[] = { "service_name=web", "zone=a=b", "zone=c" };
	struct series_labels labels;
	char many[64][16];
	const char *pointers[64];

	assert_int_equal(pyroscope_labels_init(&labels, NULL, 0, NULL), 0);
	assert_string_equal(label_of(&labels, "service_name"), "sonde");
	assert_string_equal(label_of(&labels, "__name__"), "process_cpu");
	assert_int_equal(strlen(label_of(&labels, "__session_id__")), 16);
	assert_true(*label_of(&labels, "hostname"));
	assert_int_equal(pyroscope_labels_init(&labels, texts, 3, NULL), 0);
	assert_string_equal(label_of(&labels, "service_name"), "web");
	assert_string_equal(label_of(&labels, "zone"), "c");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(pyroscope_labels_init(&labels, &bad[i], 1, NULL), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		snprintf(many[i], sizeof(many[i]), "l%zu=x", i);
		pointers[i] = many[i];
	}
	assert_int_equal(pyroscope_labels_init(&labels, pointers, 64, NULL), 0);
	assert_int_equal(labels.nr, SERIES_MAX_LABELS);
}

static void answers_of_pyroscope(void **state)
{
	static const struct {
		int status;
		const char *body;
		enum push_result result;
		const char *text;
	} cases[] = {
		{ 200, "", PUSH_DELIVERED, "" },
		{ 400, "{\"code\":\"invalid_argument\",\"message\":\"no \\u001b[2J\"}", PUSH_REFUSED,
		  "HTTP 400: invalid_argument: no ?[2J" },
		{ 429, "{\"code\":\"resource_exhausted\"}", PUSH_LATER, "HTTP 429: resource_exhausted" },
		{ 503, "<html>", PUSH_LATER, "HTTP 503: <html>" },
		{ 503, "{\"code\":", PUSH_LATER, "HTTP 503: {\"code\":" },
		{ 404, "{\"code\":1,\"message\":null}", PUSH_LATER, "HTTP 404: {\"code\":1,\"message\":null}" },
		{ 500, "", PUSH_LATER, "HTTP 500" },
	};
	struct post_answer *answer = calloc(1, sizeof(*answer));

	assert_non_null(answer);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct push_answer result = { 0 };

		answer->status = cases[i].status;
		answer->size = strlen(cases[i].body);
		memcpy(answer->body, cases[i].body, answer->size);
		pyroscope_push.judge(NULL, answer, &result);
		assert_int_equal(result.result, cases[i].result);
		assert_string_equal(result.text, cases[i].text);
	}
	free(answer);
}

/* --- Parca and ClickHouse ------------------------------------------------------------------------------------------------------------- */

static void addresses_of_others(void **state)
{
	static const struct {
		const char *text, *parca, *clickhouse; /* NULL: refused */
	} cases[] = {
		{ "grpc://p", "http://p:7070/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", NULL },
		{ "p:1", "https://p:1/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", NULL },
		{ "http://c", NULL, "http://c:8123/?query=INSERT%20INTO%20sonde.lines%20FORMAT%20LineAsString" },
		{ "https://c:1/", NULL, "https://c:1/?query=INSERT%20INTO%20sonde.lines%20FORMAT%20LineAsString" },
		{ "http://c/path", NULL, NULL },
		{ "grpc://p/path", NULL, NULL },
		{ "http://u:w@c", NULL, NULL },
		{ "", NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct endpoint endpoint;

		assert_int_equal(parca_endpoint_parse(cases[i].text, false, &endpoint, NULL), cases[i].parca ? 0 : -EINVAL);
		if (cases[i].parca)
			assert_string_equal(endpoint.url, cases[i].parca);
		assert_int_equal(clickhouse_endpoint_parse(cases[i].text, &endpoint, NULL), cases[i].clickhouse ? 0 : -EINVAL);
		if (cases[i].clickhouse)
			assert_string_equal(endpoint.url, cases[i].clickhouse);
	}
}

/* As Prometheus wants them. */
static void labels_by_name(void **state)
{
	const char *const texts[] = { "zone=a", "Abc=1" };
	struct series_labels labels;

	assert_int_equal(parca_labels_init(&labels, texts, 2, NULL), 0);
	assert_int_equal(labels.nr, 4);
	for (uint32_t i = 1; i < labels.nr; i++)
		assert_true(strcmp(labels.list[i - 1].name, labels.list[i].name) < 0);
}

static void unpack(const struct buffer *packed, char *room, size_t room_bytes)
{
	z_stream stream = { .next_in = (Bytef *)packed->data, .avail_in = (uInt)packed->size, .next_out = (Bytef *)room,
			    .avail_out = (uInt)room_bytes - 1 };

	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	room[stream.total_out] = '\0';
	inflateEnd(&stream);
}

#define WINDOW "{\"start_unix_ns\":\"1795792219227519552\",\"window_ns\":5,\"host\":\"h\\\"1\""

/* It answers an INSERT that went well with nothing. */
static void answers_of_clickhouse(void **state)
{
	static const struct {
		int status;
		const char *body;
		enum push_result result;
	} cases[] = { { 200, "", PUSH_DELIVERED },
		      { 200, "Code: 241. DB::Exception: memory", PUSH_LATER },
		      { 200, "<html>", PUSH_LATER },
		      { 404, "no table", PUSH_LATER },
		      { 400, "Code: 27", PUSH_REFUSED } };
	struct post_answer answer = { .grpc_status = POST_NO_GRPC_STATUS };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct push_answer judged = { 0 };

		answer.status = cases[i].status;
		answer.size = strlen(cases[i].body);
		memcpy(answer.body, cases[i].body, answer.size);
		clickhouse_push.judge(NULL, &answer, &judged);
		assert_int_equal(judged.result, cases[i].result);
	}
}

static void lines_of_clickhouse(void **state)
{
	static const char lines[] = "{\"record\":\"account\",\"account\":{\"host\":\"h\\\"1\",\"x\":[{}],"
				    "\"start_unix_ns\":\"1795792219227519552\","
				    "\"duration_ns\":5}}\n{\"record\":\"sample\",\"pid\":1}\nnonsense\n{\"record\":\"sample\"}",
			  want[] = WINDOW ",\"record\":\"sample\",\"pid\":1}\n" WINDOW ",\"record\":\"sample\"}\n";
	static const char *const bad[] = { "", "{", "{\"account\":{}}\n{}", "[]" };
	struct push_profile profile = { .kind = "cpu", .bytes = lines, .size = sizeof(lines) - 1 };
	struct buffer body = BUFFER_INIT(65536);
	char text[1024];

	assert_int_equal(clickhouse_push.pack(NULL, &profile, &body), 0);
	unpack(&body, text, sizeof(text));
	assert_string_equal(text, want);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		profile.bytes = bad[i];
		profile.size = strlen(bad[i]);
		assert_int_equal(clickhouse_push.pack(NULL, &profile, &body), -EBADMSG);
	}
	buffer_done(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(answers_of_grpc),
		cmocka_unit_test(answers_of_http),
		cmocka_unit_test(retry_info),
		cmocka_unit_test(settings_of_otlp),
		cmocka_unit_test(partial_success),
		cmocka_unit_test(addresses_of_pyroscope),
		cmocka_unit_test(labels_of_pyroscope),
		cmocka_unit_test(answers_of_pyroscope),
		cmocka_unit_test(addresses_of_others),
		cmocka_unit_test(labels_by_name),
		cmocka_unit_test(lines_of_clickhouse), cmocka_unit_test(answers_of_clickhouse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
