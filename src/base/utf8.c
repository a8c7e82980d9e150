// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <string.h>

struct lead {
	unsigned int nr_more; /* bytes that follow */
	uint8_t low, high;    /* valid range of the first of them */
	uint32_t bits;	      /* of the code point, from the lead byte */
};

/* nr_more 0: no multi-byte sequence begins with this byte. */
static struct lead lead_of(uint8_t byte)
{
	if (byte >= 0xc2 && byte <= 0xdf)
		return (struct lead){ 1, 0x80, 0xbf, byte & 0x1f };
	if (byte >= 0xe0 && byte <= 0xef)
		return (struct lead){ 2, byte == 0xe0 ? 0xa0 : 0x80, byte == 0xed ? 0x9f : 0xbf, byte & 0xf };
	if (byte >= 0xf0 && byte <= 0xf4)
		return (struct lead){ 3, byte == 0xf0 ? 0x90 : 0x80, byte == 0xf4 ? 0x8f : 0xbf, byte & 7 };
	return (struct lead){ 0 };
}

uint32_t utf8_next(const char **pos, const char *end)
{
	uint8_t byte = (uint8_t)(*pos)[0];
	struct lead lead = lead_of(byte);
	uint32_t code = lead.bits;

	++*pos;
	if (byte < 0x80)
		return byte;
	if (!lead.nr_more)
		return UTF8_REPLACEMENT;
	for (unsigned int i = 0; i < lead.nr_more; i++, ++*pos) {
		uint8_t next = *pos < end ? (uint8_t)(*pos)[0] : 0;

		if (next < lead.low || next > lead.high)
			return UTF8_REPLACEMENT;
		code = code << 6 | (next & 0x3f);
		lead.low = 0x80;
		lead.high = 0xbf;
	}
	return code;
}

size_t utf8_encode(uint32_t code, char bytes[UTF8_MAX_BYTES])
{
	if (code < 0x80) {
		bytes[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		bytes[0] = (char)(0xc0 | code >> 6);
		bytes[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		bytes[0] = (char)(0xe0 | code >> 12);
		bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	bytes[0] = (char)(0xf0 | code >> 18);
	bytes[1] = (char)(0x80 | (code >> 12 & 0x3f));
	bytes[2] = (char)(0x80 | (code >> 6 & 0x3f));
	bytes[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

bool utf8_is_plain(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code < 0xa0))
		return false;
	return code != 0x61c && code != 0x200e && code != 0x200f && (code < 0x2028 || code > 0x202e) && (code < 0x2066 || code > 0x2069);
}

bool utf8_append(char *to, size_t size, size_t *used, uint32_t code)
{
	char encoded[UTF8_MAX_BYTES];
	size_t width = utf8_encode(utf8_is_plain(code) ? code : UTF8_REPLACEMENT, encoded);

	if (width >= size - *used)
		return false;
	memcpy(to + *used, encoded, width);
	*used += width;
	to[*used] = '\0';
	return true;
}

void utf8_append_text(char *to, size_t size, const char *bytes, size_t nr)
{
	const char *pos = bytes, *end = bytes + nr;
	size_t used = strlen(to);

	while (pos < end && utf8_append(to, size, &used, utf8_next(&pos, end)))
		;
}
