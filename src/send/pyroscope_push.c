// SPDX-License-Identifier: Apache-2.0
#include "send/pyroscope_push.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>

#include "codec/json_read.h"
#include "codec/protobuf.h"

/* push.proto */
enum { REQUEST_SERIES = 1 };
enum { SERIES_LABELS = 1, SERIES_SAMPLES };
enum { SAMPLE_PROFILE = 1, SAMPLE_ID };

#define DEFAULT_SERIES "process_cpu"
#define UUID_BYTES 37
#define MAX_TEXT   4096

int pyroscope_labels_init(struct series_labels *labels, const char *const *texts, uint32_t nr, struct diag *diag)
{
	char host[128], session[64];
	const char *const defaults[] = { "__name__=" DEFAULT_SERIES, "service_name=sonde", host, session, NULL };
	struct utsname names = { 0 };
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return diag_errno(diag, errno, "no random numbers: %s", strerror(errno));
	uname(&names);
	snprintf(host, sizeof(host), "hostname=%.64s", *names.nodename ? names.nodename : "unknown");
	snprintf(session, sizeof(session), "__session_id__=%016" PRIx64, random);
	return series_labels_init(labels, defaults, texts, nr, diag);
}

/* --- the request ---------------------------------------------------------------------------------------------------------------------- */

static void format_uuid(const uint8_t id[PUSH_ID_BYTES], char text[UUID_BYTES])
{
	char *at = text;

	for (int i = 0; i < PUSH_ID_BYTES; i++)
		at += snprintf(at, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", id[i]);
}

/* Profiles that are not of CPUs are none of process_cpu. What the user has named stays so: the types of the values differ. */
static void name_series(struct series_labels *labels, const char *kind)
{
	for (uint32_t i = 0; strcmp(kind, "cpu") != 0 && i < labels->nr; i++) {
		struct series_label *label = &labels->list[i];

		if (!strcmp(label->name, "__name__") && !strcmp(label->value, DEFAULT_SERIES))
			snprintf(label->value, sizeof(label->value), "process_%s", kind);
	}
}

static int pack(const void *settings, const struct push_profile *profile, struct buffer *body)
{
	struct series_labels labels = *(const struct series_labels *)settings;
	size_t series = protobuf_open(body, REQUEST_SERIES), sample;
	char id[UUID_BYTES];

	name_series(&labels, profile->kind);
	series_labels_write(&labels, SERIES_LABELS, body);
	format_uuid(profile->id, id);
	sample = protobuf_open(body, SERIES_SAMPLES);
	protobuf_bytes(body, SAMPLE_PROFILE, profile->bytes, profile->size); /* gzipped by itself */
	protobuf_bytes(body, SAMPLE_ID, id, strlen(id));
	protobuf_close(body, sample);
	protobuf_close(body, series);
	return body->err;
}

/* --- the answer ----------------------------------------------------------------------------------------------------------------------- */

/* Connect's error: {"code": "invalid_argument", "message": "..."}. False: it is none. */
static bool read_error(const struct post_answer *answer, struct buffer *text)
{
	CLEANUP(buffer_done) struct buffer key = BUFFER_INIT(MAX_TEXT), value = BUFFER_INIT(MAX_TEXT);
	struct json_reader reader = json_reader_of(answer->body, answer->size);

	if (json_peek(&reader) != '{' || !json_enter(&reader, '{'))
		return false;
	while (json_next_key(&reader, &key)) {
		bool is_code = key.data && !strcmp(key.data, "code"), is_message = key.data && !strcmp(key.data, "message");

		if ((!is_code && !is_message) || json_peek(&reader) != '"') {
			json_skip(&reader);
			continue;
		}
		json_read_text(&reader, &value);
		if (!reader.bad && value.data)
			buffer_printf(text, "%s%s", text->size ? ": " : "", value.data);
	}
	return !reader.bad && text->size;
}

static void judge(const void *settings, const struct post_answer *answer, struct push_answer *ret_answer)
{
	CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(2 * MAX_TEXT);

	ret_answer->result = push_result_of_http(answer);
	if (ret_answer->result == PUSH_DELIVERED)
		return;
	if (read_error(answer, &text))
		push_say(ret_answer, text.data, text.size, "HTTP", answer->status);
	else
		push_say(ret_answer, answer->body, strnlen(answer->body, answer->size), "HTTP", answer->status);
}

const struct push_type pyroscope_push = {
	.format = "pprof",
	.headers = (const char *const[]){ "content-type: application/proto", "connect-protocol-version: 1", "expect:", NULL },
	.pack = pack,
	.judge = judge,
};
