// SPDX-License-Identifier: Apache-2.0
#include "send/pyroscope_push.h"

#include <ctype.h>
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
enum { LABEL_NAME = 1, LABEL_VALUE };
enum { SAMPLE_PROFILE = 1, SAMPLE_ID };

#define UUID_BYTES 37
#define MAX_TEXT   4096

/* --- labels --------------------------------------------------------------------------------------------------------------------------- */

/* As Prometheus has them. */
static bool is_name(const char *text, size_t size)
{
	if (!size || size >= PYROSCOPE_NAME_BYTES || isdigit((unsigned char)*text))
		return false;
	for (size_t i = 0; i < size; i++) {
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	}
	return true;
}

static struct pyroscope_label *find(struct pyroscope_labels *labels, const char *name, size_t size)
{
	for (uint32_t i = 0; i < labels->nr; i++) {
		if (strlen(labels->list[i].name) == size && !memcmp(labels->list[i].name, name, size))
			return &labels->list[i];
	}
	return labels->nr < PYROSCOPE_MAX_LABELS ? &labels->list[labels->nr++] : NULL;
}

static int set(struct pyroscope_labels *labels, const char *text, struct diag *diag)
{
	size_t size = strcspn(text, "=");
	const char *value = text[size] ? text + size + 1 : "";
	struct pyroscope_label *label;

	if (!is_name(text, size) || !*value || strlen(value) >= sizeof(label->value))
		return diag_errno(diag, EINVAL, "'%.80s' is no label: NAME=VALUE, a name of letters, digits and _", text);
	label = find(labels, text, size);
	if (!label)
		return diag_errno(diag, EINVAL, "more than %d labels", PYROSCOPE_MAX_LABELS);
	snprintf(label->name, sizeof(label->name), "%.*s", (int)size, text);
	snprintf(label->value, sizeof(label->value), "%s", value);
	return 0;
}

int pyroscope_labels_init(struct pyroscope_labels *labels, const char *const *texts, uint32_t nr, struct diag *diag)
{
	char host[128], session[64];
	const char *const defaults[] = { "__name__=process_cpu", "service_name=sonde", host, session };
	struct utsname names = { 0 };
	uint64_t random = 0;
	int err = 0;

	labels->nr = 0;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return diag_errno(diag, errno, "no random numbers: %s", strerror(errno));
	uname(&names);
	snprintf(host, sizeof(host), "hostname=%.64s", *names.nodename ? names.nodename : "unknown");
	snprintf(session, sizeof(session), "__session_id__=%016" PRIx64, random);
	for (size_t i = 0; !err && i < ARRAY_SIZE(defaults); i++)
		err = set(labels, defaults[i], diag);
	for (uint32_t i = 0; !err && i < nr; i++)
		err = set(labels, texts[i], diag);
	return err;
}

/* --- the request ---------------------------------------------------------------------------------------------------------------------- */

static void add_label(const struct pyroscope_label *label, struct buffer *body)
{
	size_t opened = protobuf_open(body, SERIES_LABELS);

	protobuf_bytes(body, LABEL_NAME, label->name, strlen(label->name));
	protobuf_bytes(body, LABEL_VALUE, label->value, strlen(label->value));
	protobuf_close(body, opened);
}

static void format_uuid(const uint8_t id[PUSH_ID_BYTES], char text[UUID_BYTES])
{
	char *at = text;

	for (int i = 0; i < PUSH_ID_BYTES; i++)
		at += snprintf(at, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", id[i]);
}

static int pack(const void *settings, const struct push_profile *profile, struct buffer *body)
{
	const struct pyroscope_labels *labels = settings;
	size_t series = protobuf_open(body, REQUEST_SERIES), sample;
	char id[UUID_BYTES];

	for (uint32_t i = 0; i < labels->nr; i++)
		add_label(&labels->list[i], body);
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

static void judge(const struct post_answer *answer, struct push_answer *ret_answer)
{
	CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(2 * MAX_TEXT);

	ret_answer->result = push_result_of_http(answer->status);
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
