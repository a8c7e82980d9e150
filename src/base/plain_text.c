// SPDX-License-Identifier: Apache-2.0
#include "base/plain_text.h"

#include <string.h>

#include "base/utf8.h"

void plain_text(struct buffer *buffer, const char *text, char semicolon)
{
	const char *end = text + strlen(text);

	while (text < end) {
		const char *from = text;
		char bytes[UTF8_MAX_BYTES];
		uint32_t code;

		while (text < end && *text >= ' ' && *text < 0x7f && *text != ';')
			text++;
		buffer_append(buffer, from, (size_t)(text - from));
		if (text == end)
			return;
		code = utf8_next(&text, end);
		if (code == ';')
			code = (uint8_t)semicolon;
		else if (!utf8_is_plain(code))
			code = '?';
		buffer_append(buffer, bytes, utf8_encode(code, bytes));
	}
}

void plain_make(char *text)
{
	const char *from = text, *end = text + strlen(text);

	while (from < end) {
		uint32_t code = utf8_next(&from, end);

		if (code == UTF8_REPLACEMENT || !utf8_is_plain(code))
			code = '?';
		text += utf8_encode(code, text); /* never longer than what was read */
	}
	*text = '\0';
}
