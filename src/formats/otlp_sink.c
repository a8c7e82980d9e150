// SPDX-License-Identifier: Apache-2.0
#include "formats/otlp_sink.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "codec/protobuf.h"

static void push(struct otlp_sink *sink, uint32_t number)
{
	sink->opened[sink->depth++] = protobuf_open(sink->json.buffer, number);
}

static void pop(struct otlp_sink *sink)
{
	protobuf_close(sink->json.buffer, sink->opened[--sink->depth]);
}

void otlp_begin(struct otlp_sink *sink, struct otlp_field field)
{
	if (sink->is_json)
		json_key(&sink->json, field.name);
	otlp_item(sink, field);
}

void otlp_item(struct otlp_sink *sink, struct otlp_field field)
{
	if (sink->is_json)
		json_open(&sink->json, '{');
	else
		push(sink, field.number);
}

void otlp_end(struct otlp_sink *sink)
{
	if (sink->is_json)
		json_close(&sink->json, '}');
	else
		pop(sink);
}

void otlp_list_begin(struct otlp_sink *sink, struct otlp_field field)
{
	if (!sink->is_json)
		return;
	json_line(&sink->json);
	json_key(&sink->json, field.name);
	json_open(&sink->json, '[');
}

void otlp_list_end(struct otlp_sink *sink)
{
	if (sink->is_json)
		json_close(&sink->json, ']');
}

void otlp_u32(struct otlp_sink *sink, struct otlp_field field, uint32_t value)
{
	if (!sink->is_json)
		protobuf_u64(sink->json.buffer, field.number, value);
	else if (value)
		json_key_u64(&sink->json, field.name, value);
}

static void json_quoted(struct otlp_sink *sink, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	json_text(&sink->json, digits);
}

static void json_quoted_i64(struct otlp_sink *sink, int64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRId64, value);
	json_text(&sink->json, digits);
}

void otlp_u64(struct otlp_sink *sink, struct otlp_field field, uint64_t value)
{
	if (!sink->is_json) {
		protobuf_u64(sink->json.buffer, field.number, value);
	} else if (value) {
		json_key(&sink->json, field.name);
		json_quoted(sink, value);
	}
}

void otlp_fixed64(struct otlp_sink *sink, struct otlp_field field, uint64_t value)
{
	if (sink->is_json)
		otlp_u64(sink, field, value);
	else
		protobuf_fixed64(sink->json.buffer, field.number, value);
}

void otlp_choice_i64(struct otlp_sink *sink, struct otlp_field field, int64_t value)
{
	if (sink->is_json) {
		json_key(&sink->json, field.name);
		json_quoted_i64(sink, value);
		return;
	}
	protobuf_varint(sink->json.buffer, (uint64_t)field.number << 3);
	protobuf_varint(sink->json.buffer, (uint64_t)value);
}

/* Protobuf's texts must be UTF-8; JSON's writer ensures that itself. */
static void protobuf_valid_text(struct otlp_sink *sink, uint32_t number, const char *text)
{
	const char *end = text + strlen(text);
	char bytes[UTF8_MAX_BYTES];

	sink->scratch.size = 0;
	while (text < end) {
		const char *from = text;

		while (text < end && *text > 0)
			text++;
		buffer_append(&sink->scratch, from, (size_t)(text - from));
		if (text < end)
			buffer_append(&sink->scratch, bytes, utf8_encode(utf8_next(&text, end), bytes));
	}
	if (sink->scratch.err && !sink->json.buffer->err)
		sink->json.buffer->err = sink->scratch.err;
	protobuf_bytes(sink->json.buffer, number, sink->scratch.size ? sink->scratch.data : "", sink->scratch.size);
}

void otlp_text(struct otlp_sink *sink, struct otlp_field field, const char *text)
{
	if (sink->is_json)
		json_key_text(&sink->json, field.name, text);
	else
		protobuf_valid_text(sink, field.number, text);
}

void otlp_id(struct otlp_sink *sink, struct otlp_field field, const uint8_t *bytes, size_t size)
{
	char digits[2 * OTLP_MAX_ID + 1] = "";

	if (!sink->is_json) {
		protobuf_bytes(sink->json.buffer, field.number, bytes, size);
		return;
	}
	hex_write(bytes, size, digits);
	json_key_text(&sink->json, field.name, digits);
}

void otlp_numbers_begin(struct otlp_sink *sink, struct otlp_field field)
{
	if (sink->is_json) {
		json_key(&sink->json, field.name);
		json_open(&sink->json, '[');
	} else {
		push(sink, field.number);
	}
}

void otlp_number(struct otlp_sink *sink, uint32_t value)
{
	if (sink->is_json)
		json_u64(&sink->json, value);
	else
		protobuf_varint(sink->json.buffer, value);
}

void otlp_number_i64(struct otlp_sink *sink, int64_t value)
{
	if (sink->is_json)
		json_quoted_i64(sink, value);
	else
		protobuf_varint(sink->json.buffer, (uint64_t)value);
}

void otlp_number_fixed64(struct otlp_sink *sink, uint64_t value)
{
	uint8_t bytes[8];

	if (sink->is_json) {
		json_quoted(sink, value);
		return;
	}
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	buffer_append(sink->json.buffer, bytes, sizeof(bytes));
}

void otlp_numbers_end(struct otlp_sink *sink)
{
	if (sink->is_json)
		json_close(&sink->json, ']');
	else
		pop(sink);
}

void otlp_text_item(struct otlp_sink *sink, struct otlp_field field, const char *text)
{
	if (sink->is_json)
		json_text(&sink->json, text);
	else
		protobuf_valid_text(sink, field.number, text);
}
