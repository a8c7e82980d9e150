// SPDX-License-Identifier: Apache-2.0
/* Converts OTLP's JSON into its protocol buffers, which read_otlp reads. So only one reader builds the profile. Field numbers are those of
 * opentelemetry-proto 1.10. */
#include "import/otlp_json.h"
#include "import/readers.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/hex.h"
#include "codec/base64.h"
#include "codec/json_read.h"
#include "codec/protobuf.h"

#define KEY_BYTES     ((size_t)1 << 20)
#define OUT_PER_BYTE  4 /* "0," becomes a time of 8 bytes; all else shrinks */
#define OUT_ANYHOW    ((size_t)4096)
#define FIXED64_BYTES 8
#define MAX_ID 16

enum kind {
	KIND_MESSAGE,
	KIND_NUMBER,
	KIND_FIXED64,
	KIND_TEXT,
	KIND_ID, /* bytes, as text */
	KIND_BOOL,
	KIND_OTHER, /* only its presence counts */
};

struct field { /* a message's list of fields ends with one without a name */
	const char *name;
	uint32_t number;
	enum kind kind;
	const struct field *message; /* of KIND_MESSAGE */
};

static const struct field any_value[] = {
	{ "stringValue", 1, KIND_TEXT, NULL },	 { "boolValue", 2, KIND_BOOL, NULL },	{ "intValue", 3, KIND_NUMBER, NULL },
	{ "doubleValue", 4, KIND_OTHER, NULL },	 { "arrayValue", 5, KIND_OTHER, NULL }, { "kvlistValue", 6, KIND_OTHER, NULL },
	{ "bytesValue", 7, KIND_OTHER, NULL },	 { "stringValueStrindex", 8, KIND_NUMBER, NULL }, { 0 },
};
static const struct field key_value[] = {
	{ "key", 1, KIND_TEXT, NULL }, { "value", 2, KIND_MESSAGE, any_value }, { "keyStrindex", 3, KIND_NUMBER, NULL }, { 0 },
};
static const struct field resource[] = { { "attributes", 1, KIND_MESSAGE, key_value }, { 0 } };
static const struct field value_type[] = { { "typeStrindex", 1, KIND_NUMBER, NULL }, { "unitStrindex", 2, KIND_NUMBER, NULL }, { 0 } };
static const struct field sample[] = {
	{ "stackIndex", 1, KIND_NUMBER, NULL }, { "attributeIndices", 2, KIND_NUMBER, NULL },
	{ "linkIndex", 3, KIND_NUMBER, NULL },	{ "values", 4, KIND_NUMBER, NULL },
	{ "timestampsUnixNano", 5, KIND_FIXED64, NULL }, { 0 },
};
static const struct field profile[] = {
	{ "sampleType", 1, KIND_MESSAGE, value_type },
	{ "samples", 2, KIND_MESSAGE, sample },
	{ "sample", 2, KIND_MESSAGE, sample }, /* before 1.9 */
	{ "timeUnixNano", 3, KIND_NUMBER, NULL },
	{ "durationNano", 4, KIND_NUMBER, NULL },
	{ "periodType", 5, KIND_MESSAGE, value_type },
	{ "period", 6, KIND_NUMBER, NULL },
	{ 0 },
};
static const struct field scope_profiles[] = { { "profiles", 2, KIND_MESSAGE, profile }, { 0 } };
static const struct field resource_profiles[] = { { "resource", 1, KIND_MESSAGE, resource },
						  { "scopeProfiles", 2, KIND_MESSAGE, scope_profiles },
						  { 0 } };
static const struct field mapping[] = {
	{ "memoryStart", 1, KIND_NUMBER, NULL }, { "memoryLimit", 2, KIND_NUMBER, NULL }, { "fileOffset", 3, KIND_NUMBER, NULL },
	{ "filenameStrindex", 4, KIND_NUMBER, NULL }, { "attributeIndices", 5, KIND_NUMBER, NULL }, { 0 },
};
static const struct field line[] = {
	{ "functionIndex", 1, KIND_NUMBER, NULL }, { "line", 2, KIND_NUMBER, NULL }, { "column", 3, KIND_NUMBER, NULL }, { 0 }
};
static const struct field location[] = {
	{ "mappingIndex", 1, KIND_NUMBER, NULL },     { "address", 2, KIND_NUMBER, NULL },
	{ "lines", 3, KIND_MESSAGE, line },	      { "line", 3, KIND_MESSAGE, line }, /* before 1.9 */
	{ "attributeIndices", 4, KIND_NUMBER, NULL }, { 0 },
};
static const struct field function[] = {
	{ "nameStrindex", 1, KIND_NUMBER, NULL },
	{ "systemNameStrindex", 2, KIND_NUMBER, NULL },
	{ "filenameStrindex", 3, KIND_NUMBER, NULL },
	{ "startLine", 4, KIND_NUMBER, NULL },
	{ 0 },
};
static const struct field attribute[] = {
	{ "keyStrindex", 1, KIND_NUMBER, NULL }, { "value", 2, KIND_MESSAGE, any_value }, { "unitStrindex", 3, KIND_NUMBER, NULL }, { 0 },
};
static const struct field stack[] = { { "locationIndices", 1, KIND_NUMBER, NULL }, { 0 } };
static const struct field link_ids[] = { { "traceId", 1, KIND_ID, NULL }, { "spanId", 2, KIND_ID, NULL }, { 0 } };
static const struct field dictionary[] = {
	{ "mappingTable", 1, KIND_MESSAGE, mapping },
	{ "locationTable", 2, KIND_MESSAGE, location },
	{ "functionTable", 3, KIND_MESSAGE, function },
	{ "linkTable", 4, KIND_MESSAGE, link_ids },
	{ "stringTable", 5, KIND_TEXT, NULL },
	{ "attributeTable", 6, KIND_MESSAGE, attribute },
	{ "stackTable", 7, KIND_MESSAGE, stack },
	{ 0 },
};
static const struct field file[] = { { "resourceProfiles", 1, KIND_MESSAGE, resource_profiles },
				     { "dictionary", 2, KIND_MESSAGE, dictionary },
				     { 0 } };

struct transcoder {
	struct json_reader r;
	struct buffer text; /* a key, or a text being converted */
	struct buffer *out;
};

/* Matches "stackIndex", the JSON name, and "stack_index", which readers must accept too. */
static bool is_name(const char *key, const char *name)
{
	for (; *key; key++) {
		if (*key == '_')
			continue;
		if (tolower((uint8_t)*key) != tolower((uint8_t)*name))
			return false;
		name++;
	}
	return !*name;
}

static const struct field *find_field(const struct field *fields, const char *key)
{
	for (; fields->name; fields++) {
		if (is_name(key, fields->name))
			return fields;
	}
	return NULL;
}

static uint64_t read_number(struct json_reader *r)
{
	const char *at;

	json_peek(r);
	at = r->pos + (r->pos < r->end && *r->pos == '"');
	return at < r->end && *at == '-' ? (uint64_t)json_read_i64(r) : json_read_u64(r);
}

static void put_fixed64(struct buffer *out, uint64_t value)
{
	uint8_t bytes[FIXED64_BYTES];

	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	buffer_append(out, bytes, sizeof(bytes));
}

/* Writes 0, too: its presence selects the value of a oneof. */
static void put_number(struct buffer *out, uint32_t number, uint64_t value)
{
	protobuf_varint(out, (uint64_t)number << 3);
	protobuf_varint(out, value);
}

static void read_numbers(struct transcoder *t, const struct field *field)
{
	size_t opened = protobuf_open(t->out, field->number);

	if (json_enter(&t->r, '[')) {
		while (json_next(&t->r)) {
			uint64_t value = read_number(&t->r);

			if (field->kind == KIND_FIXED64)
				put_fixed64(t->out, value);
			else
				protobuf_varint(t->out, value);
		}
	}
	protobuf_close(t->out, opened);
}

/* OTLP writes ids as hexadecimal digits, protobuf's own writers as base64, which is longer or ends with '='. What is no id has no bytes. */
static void put_id(struct transcoder *t, uint32_t number)
{
	uint8_t bytes[MAX_ID];
	size_t size = t->text.size / 2;

	if (!t->text.data || ((size > sizeof(bytes) || !hex_read(t->text.data, bytes, size)) &&
			      base64_read(t->text.data, bytes, sizeof(bytes), &size)))
		size = 0;
	protobuf_bytes(t->out, number, bytes, size);
}

static void read_message(struct transcoder *t, const struct field *fields);

/* Recursion is as deep as the messages above are nested. */
static void read_value(struct transcoder *t, const struct field *field)
{
	size_t opened;

	switch (field->kind) {
	case KIND_MESSAGE:
		opened = protobuf_open(t->out, field->number);
		read_message(t, field->message);
		protobuf_close(t->out, opened);
		break;
	case KIND_NUMBER:
	case KIND_FIXED64:
		put_number(t->out, field->number, read_number(&t->r));
		break;
	case KIND_TEXT:
		json_read_text(&t->r, &t->text);
		protobuf_bytes(t->out, field->number, t->text.data, t->text.size);
		break;
	case KIND_ID:
		json_read_text(&t->r, &t->text);
		put_id(t, field->number);
		break;
	case KIND_BOOL:
		put_number(t->out, field->number, json_read_bool(&t->r));
		break;
	case KIND_OTHER:
		json_skip(&t->r);
		put_number(t->out, field->number, 1);
		break;
	}
}

static void read_field(struct transcoder *t, const struct field *field)
{
	if (json_take_null(&t->r))
		return;
	if (json_peek(&t->r) != '[' || field->kind == KIND_OTHER) {
		read_value(t, field);
	} else if (field->kind == KIND_NUMBER || field->kind == KIND_FIXED64) {
		read_numbers(t, field);
	} else if (json_enter(&t->r, '[')) {
		while (json_next(&t->r) && !t->out->err)
			read_value(t, field);
	}
}

static void read_message(struct transcoder *t, const struct field *fields)
{
	if (!json_enter(&t->r, '{'))
		return;
	while (json_next_key(&t->r, &t->text) && !t->out->err) {
		const struct field *field = find_field(fields, t->text.data);

		if (field)
			read_field(t, field);
		else
			json_skip(&t->r);
	}
}

static void transcoder_done(struct transcoder *t)
{
	buffer_done(&t->text);
}

bool otlp_json_is(const char *key, char bracket)
{
	const struct field *field = find_field(file, key);

	return field && bracket == (field->number == 1 ? '[' : '{');
}

static int transcode(struct importer *importer, struct buffer *out)
{
	CLEANUP(transcoder_done)
	struct transcoder t = { .r = json_reader_of(importer->bytes, importer->size), .text = BUFFER_INIT(KEY_BYTES), .out = out };

	read_message(&t, file);
	json_end(&t.r);
	if (out->err || t.text.err == -ENOMEM)
		return -ENOMEM;
	return t.r.bad ? import_bad(importer, "OTLP's JSON", t.r.pos, t.r.bad) : 0;
}

int read_otlp_json(struct importer *importer)
{
	CLEANUP(buffer_done) struct buffer out = BUFFER_INIT(importer->size * OUT_PER_BYTE + OUT_ANYHOW);
	int err = transcode(importer, &out);

	return err ? err : otlp_read_message(importer, out.size ? out.data : "", out.size);
}
