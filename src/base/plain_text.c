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

void plain_copy(char *to, size_t room, const char *text, size_t size)
{
	static const char cut[] = "...";
	const char *end = text + strnlen(text, size);
	size_t done = 0, kept = 0; /* `kept`: as much as leaves room for the dots */

	while (text < end) {
		uint32_t code = utf8_next(&text, end);
		char bytes[UTF8_MAX_BYTES];
		size_t nr = utf8_encode(code == UTF8_REPLACEMENT || !utf8_is_plain(code) ? '?' : code, bytes);

		if (done + nr >= room) {
			memcpy(to + kept, cut, sizeof(cut));
			return;
		}
		memcpy(to + done, bytes, nr);
		done += nr;
		if (done + sizeof(cut) <= room)
			kept = done;
	}
	to[done] = '\0';
}
