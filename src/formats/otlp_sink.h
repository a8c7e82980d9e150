/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_sink: writes one message, as protobuf or as OTLP's JSON (lowerCamelCase, 64-bit numbers as strings). Fields that are 0 or "" are
 * left out, as in proto3. The buffer records errors. */
#pragma once
#include "codec/json.h"

#define OTLP_MAX_DEPTH 12
#define OTLP_MAX_ID    16

struct otlp_field {
	uint32_t number;
	const char *name;
};

struct otlp_sink {
	struct json json;      /* its buffer also serves protobuf */
	struct buffer scratch; /* the caller frees it */
	size_t opened[OTLP_MAX_DEPTH];
	uint32_t depth;
	bool is_json;
};

void otlp_begin(struct otlp_sink *sink, struct otlp_field field); /* begins a message */
void otlp_end(struct otlp_sink *sink);
/* A list of messages: items between begin and end; `field` is that of the list. */
void otlp_list_begin(struct otlp_sink *sink, struct otlp_field field);
void otlp_item(struct otlp_sink *sink, struct otlp_field field); /* ended by otlp_end */
void otlp_list_end(struct otlp_sink *sink);
void otlp_u32(struct otlp_sink *sink, struct otlp_field field, uint32_t value);
void otlp_u64(struct otlp_sink *sink, struct otlp_field field, uint64_t value); /* uint64, int64 */
void otlp_fixed64(struct otlp_sink *sink, struct otlp_field field, uint64_t value);
void otlp_choice_i64(struct otlp_sink *sink, struct otlp_field field, int64_t value); /* of a oneof: 0 is written too */
void otlp_text(struct otlp_sink *sink, struct otlp_field field, const char *text);    /* "" is written too */
/* At most OTLP_MAX_ID bytes. JSON: as hexadecimal digits. */
void otlp_id(struct otlp_sink *sink, struct otlp_field field, const uint8_t *bytes, size_t size);
/* A list of numbers. */
void otlp_numbers_begin(struct otlp_sink *sink, struct otlp_field field);
void otlp_number(struct otlp_sink *sink, uint32_t value);
void otlp_number_i64(struct otlp_sink *sink, int64_t value);
void otlp_number_fixed64(struct otlp_sink *sink, uint64_t value);
void otlp_numbers_end(struct otlp_sink *sink);
/* Writes one of a list of texts, between otlp_list_begin and otlp_list_end. */
void otlp_text_item(struct otlp_sink *sink, struct otlp_field field, const char *text);
