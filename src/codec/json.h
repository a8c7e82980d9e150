/* SPDX-License-Identifier: Apache-2.0 */
/* json: a streaming writer, which settles its buffer. The caller opens and closes in pairs; the writer sets commas. Any bytes give valid
 * JSON (RFC 8259): what is not UTF-8 becomes U+FFFD. Errors are the buffer's. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

#define JSON_MAX_NUMBER ((1ULL << 53) - 1) /* larger numbers are written as strings: readers store numbers as doubles */

struct json {
	struct buffer *buffer;
	bool in_html; /* also escape what could end a <script> */
	bool comma;   /* the next element needs one */
};

void json_open(struct json *json, char bracket);  /* '{' or '[' */
void json_close(struct json *json, char bracket); /* '}' or ']' */
void json_key(struct json *json, const char *key);
void json_line(struct json *json); /* puts the next element on a new line */
void json_text(struct json *json, const char *text);
void json_u64(struct json *json, uint64_t value);
void json_i64(struct json *json, int64_t value);
void json_fixed(struct json *json, int64_t value, unsigned int digits); /* value / 10^digits (at most 18), exact, never in quotes */
void json_null(struct json *json);
void json_bool(struct json *json, bool value);
/* A key with its value. */
void json_key_text(struct json *json, const char *key, const char *text);
void json_key_u64(struct json *json, const char *key, uint64_t value);
void json_key_hex(struct json *json, const char *key, uint64_t value);
