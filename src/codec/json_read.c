// SPDX-License-Identifier: Apache-2.0
#include "codec/json_read.h"

#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"

struct json_reader json_reader_of(const char *text, size_t size)
{
	return (struct json_reader){ .pos = text, .end = text + size };
}

void json_fail(struct json_reader *r, const char *why)
{
	if (!r->bad)
		r->bad = why;
}

static void skip_blanks(struct json_reader *r)
{
	while (r->pos < r->end && (*r->pos == ' ' || *r->pos == '\n' || *r->pos == '\t' || *r->pos == '\r'))
		r->pos++;
}

char json_peek(struct json_reader *r)
{
	char c;

	skip_blanks(r);
	if (r->bad || r->pos == r->end)
		return 0;
	c = *r->pos;
	if (c == '-' || (c >= '0' && c <= '9'))
		return '0';
	return c && strchr("{[\"tfn", c) ? c : 0;
}

bool json_enter(struct json_reader *r, char bracket)
{
	if (json_peek(r) != bracket) {
		json_fail(r, r->pos == r->end ? "it ends too early" : bracket == '{' ? "an object was expected" : "a list was expected");
		return false;
	}
	r->pos++;
	r->fresh = true;
	return true;
}

/* Skips the comma before the next element. At the closing bracket skips it and returns false. */
static bool next_element(struct json_reader *r, char closing)
{
	skip_blanks(r);
	if (r->bad)
		return false;
	if (r->pos == r->end) {
		json_fail(r, "it ends too early");
		return false;
	}
	if (*r->pos == closing) {
		r->pos++;
		r->fresh = false;
		return false;
	}
	if (!r->fresh && *r->pos != ',') {
		json_fail(r, "a comma or the closing bracket was expected");
		return false;
	}
	r->pos += !r->fresh;
	r->fresh = false;
	return true;
}

bool json_next(struct json_reader *r)
{
	return next_element(r, ']');
}

bool json_next_key(struct json_reader *r, struct buffer *ret_key)
{
	if (!next_element(r, '}'))
		return false;
	json_read_text(r, ret_key);
	skip_blanks(r);
	if (r->pos == r->end || *r->pos != ':')
		json_fail(r, "a colon was expected");
	else
		r->pos++;
	return !r->bad;
}

/* Reads the four digits of \uXXXX; r->pos is behind the u. */
static uint32_t read_unit(struct json_reader *r)
{
	uint32_t unit = 0;

	if (r->end - r->pos < 4) {
		json_fail(r, "it ends too early");
		return 0;
	}
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(r->pos[i]);

		if (digit < 0) {
			json_fail(r, "\\u is followed by four hexadecimal digits");
			return 0;
		}
		unit = unit << 4 | (uint32_t)digit;
	}
	r->pos += 4;
	return unit;
}

static uint32_t read_unicode(struct json_reader *r)
{
	uint32_t unit = read_unit(r), low;
	const char *before = r->pos;

	if (unit < 0xd800 || unit > 0xdfff)
		return unit ? unit : '?'; /* our texts end at a NUL */
	if (unit > 0xdbff || r->end - r->pos < 2 || r->pos[0] != '\\' || r->pos[1] != 'u')
		return UTF8_REPLACEMENT;
	r->pos += 2;
	low = read_unit(r);
	if (low >= 0xdc00 && low <= 0xdfff)
		return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
	r->pos = before;
	return UTF8_REPLACEMENT;
}

/* Reads what follows a backslash. */
static void read_escape(struct json_reader *r, struct buffer *text)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;
	char bytes[UTF8_MAX_BYTES];

	if (r->pos == r->end) {
		json_fail(r, "it ends too early");
		return;
	}
	found = *r->pos ? strchr(from, *r->pos) : NULL;
	if (found) {
		buffer_append(text, &to[found - from], 1);
		r->pos++;
	} else if (*r->pos == 'u') {
		r->pos++;
		buffer_append(text, bytes, utf8_encode(read_unicode(r), bytes));
	} else {
		json_fail(r, "there is no such escape");
	}
}

void json_read_text(struct json_reader *r, struct buffer *ret_text)
{
	ret_text->size = 0;
	buffer_append(ret_text, "", 0);
	if (json_peek(r) != '"') {
		json_fail(r, r->pos == r->end ? "it ends too early" : "a text was expected");
		return;
	}
	r->pos++;
	while (!r->bad) {
		const char *from = r->pos;

		while (r->pos < r->end && (uint8_t)*r->pos >= ' ' && *r->pos != '"' && *r->pos != '\\')
			r->pos++;
		buffer_append(ret_text, from, (size_t)(r->pos - from));
		if (r->pos == r->end) {
			json_fail(r, "a text has no end");
		} else if (*r->pos == '"') {
			r->pos++;
			if (ret_text->err)
				json_fail(r, "a text is too long");
			return;
		} else if (*r->pos == '\\') {
			r->pos++;
			read_escape(r, ret_text);
		} else {
			json_fail(r, "a control character stands in a text");
		}
	}
}

static void skip_text(struct json_reader *r)
{
	for (r->pos++; r->pos < r->end && *r->pos != '"'; r->pos++)
		r->pos += *r->pos == '\\' && r->pos + 1 < r->end;
	if (r->pos >= r->end)
		json_fail(r, "a text has no end");
	else
		r->pos++;
}

static void skip_word(struct json_reader *r, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(r->end - r->pos) < size || memcmp(r->pos, word, size) != 0)
		json_fail(r, "nothing of JSON begins so");
	else
		r->pos += size;
}

/* Skips a text, a number or a word. */
static void skip_plain(struct json_reader *r)
{
	switch (json_peek(r)) {
	case '"':
		skip_text(r);
		break;
	case '0':
		while (r->pos < r->end && *r->pos && strchr("+-.0123456789eE", *r->pos))
			r->pos++;
		break;
	case 't':
		skip_word(r, "true");
		break;
	case 'f':
		skip_word(r, "false");
		break;
	case 'n':
		skip_word(r, "null");
		break;
	default:
		json_fail(r, r->pos == r->end ? "it ends too early" : "nothing of JSON begins so");
	}
}

/* Skips the key before a value in an object. */
static void skip_key(struct json_reader *r)
{
	if (json_peek(r) != '"') {
		json_fail(r, "a key was expected");
		return;
	}
	skip_text(r);
	skip_blanks(r);
	if (r->pos == r->end || *r->pos != ':')
		json_fail(r, "a colon was expected");
	else
		r->pos++;
}

void json_skip(struct json_reader *r)
{
	char open[JSON_MAX_DEPTH];
	uint32_t depth = 0;

	do {
		char c = json_peek(r);

		if (c == '{' || c == '[') {
			if (depth == JSON_MAX_DEPTH) {
				json_fail(r, "it is nested too deep");
				return;
			}
			r->pos++;
			r->fresh = true;
			open[depth++] = c;
		} else {
			skip_plain(r);
			r->fresh = false;
		}
		while (depth && !next_element(r, open[depth - 1] == '{' ? '}' : ']') && !r->bad)
			depth--;
		if (depth && open[depth - 1] == '{' && !r->bad)
			skip_key(r);
	} while (depth && !r->bad);
}

/* Reads the digits at r->pos, and moves behind them. */
static uint64_t read_digits(struct json_reader *r)
{
	const char *from = r->pos;
	uint64_t value = 0;
	bool over = false;

	for (; r->pos < r->end && *r->pos >= '0' && *r->pos <= '9'; r->pos++) {
		over |= __builtin_mul_overflow(value, 10, &value);
		over |= __builtin_add_overflow(value, (uint64_t)(*r->pos - '0'), &value);
	}
	if (r->pos == from || (r->pos < r->end && *r->pos && strchr(".eE", *r->pos)))
		json_fail(r, "a whole number was expected");
	else if (over)
		json_fail(r, "a number is too large");
	return value;
}

static uint64_t read_hex(struct json_reader *r)
{
	const char *from = r->pos;
	uint64_t value = 0;

	for (; r->pos < r->end && hex_digit(*r->pos) >= 0; r->pos++)
		value = value << 4 | (uint64_t)hex_digit(*r->pos);
	if (r->pos == from || r->pos - from > 16)
		json_fail(r, "a number has 1 to 16 hexadecimal digits");
	return value;
}

/* Reads a number; returns its absolute value, and the sign in *ret_negative. */
static uint64_t read_number(struct json_reader *r, bool *ret_negative)
{
	bool quoted = json_peek(r) == '"';
	uint64_t value;

	r->pos += quoted;
	*ret_negative = r->pos < r->end && *r->pos == '-';
	r->pos += *ret_negative;
	if (quoted && r->end - r->pos > 2 && r->pos[0] == '0' && r->pos[1] == 'x') {
		r->pos += 2;
		value = read_hex(r);
	} else {
		value = read_digits(r);
	}
	if (quoted && !r->bad) {
		if (r->pos < r->end && *r->pos == '"')
			r->pos++;
		else
			json_fail(r, "a whole number was expected");
	}
	return r->bad ? 0 : value;
}

uint64_t json_read_u64(struct json_reader *r)
{
	bool negative;
	uint64_t value = read_number(r, &negative);

	if (negative && value)
		json_fail(r, "a number is below 0");
	return r->bad ? 0 : value;
}

int64_t json_read_i64(struct json_reader *r)
{
	bool negative;
	uint64_t value = read_number(r, &negative);

	if (value > (uint64_t)INT64_MAX + negative)
		json_fail(r, "a number is too large");
	if (r->bad)
		return 0;
	return negative ? (int64_t)(0 - value) : (int64_t)value;
}

#define MAX_EXPONENT 400 /* beyond it a number is 0 or too large */

static int read_exponent(struct json_reader *r)
{
	int exponent = 0, sign = 1;

	if (r->pos == r->end || (*r->pos != 'e' && *r->pos != 'E'))
		return 0;
	r->pos++;
	if (r->pos < r->end && (*r->pos == '-' || *r->pos == '+'))
		sign = *r->pos++ == '-' ? -1 : 1;
	for (; r->pos < r->end && *r->pos >= '0' && *r->pos <= '9'; r->pos++)
		exponent = exponent < MAX_EXPONENT ? exponent * 10 + *r->pos - '0' : exponent;
	return sign * exponent;
}

/* Reads the digits before and behind the point; *exponent becomes that of the last one that is kept. */
static uint64_t read_mantissa(struct json_reader *r, int *exponent)
{
	bool in_fraction = false;
	uint64_t value = 0;

	for (; r->pos < r->end && (*r->pos == '.' || (*r->pos >= '0' && *r->pos <= '9')); r->pos++) {
		if (*r->pos == '.') {
			in_fraction = true;
		} else if (value < INT64_MAX / 10) {
			value = value * 10 + (uint64_t)(*r->pos - '0');
			*exponent -= in_fraction;
		} else {
			*exponent += !in_fraction;
		}
	}
	return value;
}

int64_t json_read_decimal(struct json_reader *r, int nr_decimals)
{
	int exponent = nr_decimals;
	bool negative, over = false;
	uint64_t value;

	if (json_peek(r) != '0') {
		json_fail(r, "a number was expected");
		return 0;
	}
	negative = *r->pos == '-';
	r->pos += negative;
	value = read_mantissa(r, &exponent);
	exponent += read_exponent(r);
	for (; exponent > 0 && value && !over; exponent--)
		over = __builtin_mul_overflow(value, 10, &value);
	for (; exponent < 0 && value; exponent++)
		value /= 10;
	if (over || value > INT64_MAX)
		json_fail(r, "a number is too large");
	return r->bad ? 0 : negative ? -(int64_t)value : (int64_t)value;
}

bool json_read_bool(struct json_reader *r)
{
	bool value = json_peek(r) == 't';

	if (!value && json_peek(r) != 'f')
		json_fail(r, "true or false was expected");
	else
		skip_word(r, value ? "true" : "false");
	return value && !r->bad;
}

bool json_take_null(struct json_reader *r)
{
	if (json_peek(r) != 'n')
		return false;
	skip_word(r, "null");
	return !r->bad;
}

void json_end(struct json_reader *r)
{
	skip_blanks(r);
	if (r->pos < r->end)
		json_fail(r, "something follows the end");
}
