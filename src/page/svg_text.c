// SPDX-License-Identifier: Apache-2.0
#include "page/svg_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define CUT_COLUMNS 2

static uint32_t columns_of(uint32_t code)
{
	return code < 0x80 ? 1 : 2;
}

static uint32_t width_of(const char *text, const char *end, uint32_t max_columns)
{
	uint32_t columns = 0;

	while (text < end && columns <= max_columns)
		columns += columns_of(utf8_next(&text, end));
	return columns;
}

static void write_code(struct buffer *buffer, uint32_t code)
{
	char bytes[UTF8_MAX_BYTES];

	switch (code) {
	case '<':
		buffer_text(buffer, "&lt;");
		return;
	case '>':
		buffer_text(buffer, "&gt;");
		return;
	case '&':
		buffer_text(buffer, "&amp;");
		return;
	case 0xfffe:
	case 0xffff:
		code = UTF8_REPLACEMENT; /* XML 1.0 forbids these characters */
		break;
	}
	buffer_append(buffer, bytes, utf8_encode(utf8_is_plain(code) ? code : '?', bytes));
}

void svg_text(struct buffer *buffer, const char *text, uint32_t max_columns)
{
	const char *end = text + strlen(text);
	bool is_cut = width_of(text, end, max_columns) > max_columns;
	uint32_t left = !is_cut ? max_columns : max_columns > CUT_COLUMNS ? max_columns - CUT_COLUMNS : 0;

	while (text < end) {
		uint32_t code = utf8_next(&text, end);

		if (columns_of(code) > left)
			break;
		left -= columns_of(code);
		write_code(buffer, code);
	}
	if (is_cut)
		buffer_text(buffer, "..");
}

void svg_number(struct buffer *buffer, int64_t value)
{
	char digits[24];
	int size = snprintf(digits, sizeof(digits), "%" PRIu64, value < 0 ? -(uint64_t)value : (uint64_t)value);

	buffer_append(buffer, "-", value < 0);
	for (int i = 0; i < size; i++) {
		if (i && (size - i) % 3 == 0)
			buffer_append(buffer, ",", 1);
		buffer_append(buffer, &digits[i], 1);
	}
}
