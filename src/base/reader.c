// SPDX-License-Identifier: Apache-2.0
#include "base/reader.h"

/* Reads a LEB128 without sign extension. `ret_bits`: the bits in its groups of seven, which may exceed 64. */
static uint64_t read_leb(struct reader *r, unsigned int *ret_bits, bool *ret_negative)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = reader_u8(r);
		if (shift >= 70) {
			reader_fail(r);
			return 0;
		}
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	*ret_bits = shift;
	*ret_negative = byte & 0x40;
	return value;
}

uint64_t reader_uleb(struct reader *r)
{
	unsigned int bits;
	bool negative;

	return read_leb(r, &bits, &negative);
}

int64_t reader_sleb(struct reader *r)
{
	unsigned int bits = 64;
	bool negative = false;
	uint64_t value = read_leb(r, &bits, &negative);

	if (negative && bits < 64)
		value |= ~0ULL << bits;
	return (int64_t)value;
}

const char *reader_text(struct reader *r)
{
	const uint8_t *nul = memchr(r->pos, 0, reader_left(r));
	const char *text = (const char *)r->pos;

	if (!nul) {
		reader_fail(r);
		return "";
	}
	r->pos = nul + 1;
	return text;
}
