// SPDX-License-Identifier: Apache-2.0
#include "codec/json.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

static void begin_element(struct json *json)
{
	buffer_settle(json->buffer);
	if (json->comma)
		buffer_append(json->buffer, ",", 1);
	json->comma = true;
}

void json_open(struct json *json, char bracket)
{
	begin_element(json);
	buffer_append(json->buffer, &bracket, 1);
	json->comma = false;
}

void json_close(struct json *json, char bracket)
{
	buffer_append(json->buffer, &bracket, 1);
	json->comma = true;
}

void json_line(struct json *json)
{
	if (json->comma)
		buffer_append(json->buffer, ",", 1);
	buffer_append(json->buffer, "\n", 1);
	json->comma = false;
}

static bool stands_as_it_is(const struct json *json, char c)
{
	if (c < ' ' || c > '~' || c == '"' || c == '\\')
		return false;
	return !json->in_html || (c != '<' && c != '>' && c != '&');
}

static void write_code(struct json *json, uint32_t code)
{
	char bytes[UTF8_MAX_BYTES];

	switch (code) {
	case '"':
	case '\\':
		buffer_append(json->buffer, (const char[]){ '\\', (char)code }, 2);
		return;
	case '\n':
		buffer_text(json->buffer, "\\n");
		return;
	case '\t':
		buffer_text(json->buffer, "\\t");
		return;
	}
	if (code < 0x80 || !utf8_is_plain(code))
		buffer_printf(json->buffer, "\\u%04" PRIx32, code);
	else
		buffer_append(json->buffer, bytes, utf8_encode(code, bytes));
}

static void write_quoted(struct json *json, const char *text)
{
	const char *end = text + strlen(text);

	buffer_append(json->buffer, "\"", 1);
	while (text < end) {
		const char *from = text;

		while (text < end && stands_as_it_is(json, *text))
			text++;
		buffer_append(json->buffer, from, (size_t)(text - from));
		if (text < end)
			write_code(json, utf8_next(&text, end));
	}
	buffer_append(json->buffer, "\"", 1);
}

void json_key(struct json *json, const char *key)
{
	begin_element(json);
	write_quoted(json, key);
	buffer_append(json->buffer, ":", 1);
	json->comma = false;
}

void json_text(struct json *json, const char *text)
{
	begin_element(json);
	write_quoted(json, text);
}

/* Faster than printf: tables of numbers are the bulk of a file. */
static void write_decimal(struct json *json, uint64_t value)
{
	char digits[20], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	buffer_append(json->buffer, at, (size_t)(digits + sizeof(digits) - at));
}

void json_u64(struct json *json, uint64_t value)
{
	bool quote = value > JSON_MAX_NUMBER;

	begin_element(json);
	buffer_append(json->buffer, "\"", quote);
	write_decimal(json, value);
	buffer_append(json->buffer, "\"", quote);
}

void json_i64(struct json *json, int64_t value)
{
	bool quote = value > (int64_t)JSON_MAX_NUMBER || value < -(int64_t)JSON_MAX_NUMBER;

	begin_element(json);
	buffer_printf(json->buffer, quote ? "\"%" PRId64 "\"" : "%" PRId64, value);
}

void json_fixed(struct json *json, int64_t value, unsigned int digits)
{
	uint64_t absolute = value < 0 ? -(uint64_t)value : (uint64_t)value, unit = 1;

	for (unsigned int i = 0; i < digits; i++)
		unit *= 10;
	begin_element(json);
	buffer_append(json->buffer, "-", value < 0);
	write_decimal(json, absolute / unit);
	absolute %= unit;
	if (!absolute)
		return;
	buffer_append(json->buffer, ".", 1);
	while (absolute) { /* no trailing zeros */
		unit /= 10;
		buffer_append(json->buffer, (const char[]){ (char)('0' + absolute / unit) }, 1);
		absolute %= unit;
	}
}

void json_null(struct json *json)
{
	begin_element(json);
	buffer_text(json->buffer, "null");
}

void json_bool(struct json *json, bool value)
{
	begin_element(json);
	buffer_text(json->buffer, value ? "true" : "false");
}

void json_key_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_text(json, text);
}

void json_key_u64(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	json_u64(json, value);
}

void json_key_hex(struct json *json, const char *key, uint64_t value)
{
	json_key(json, key);
	begin_element(json);
	buffer_printf(json->buffer, "\"0x%" PRIx64 "\"", value);
}
