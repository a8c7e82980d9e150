// SPDX-License-Identifier: Apache-2.0
#include "runtime/java/java_lines.h"

#define HIGH_BITS 6
#define HIGH 64 /* bytes that are followed by another one */
#define MAX_BYTES 5
#define ESCAPE 0xff /* instead of a byte with both differences: two numbers with signs follow */

uint32_t java_number(struct reader *reader, bool is_sparse)
{
	uint32_t excluded = is_sparse ? 1 : 0, sum = 0;

	for (uint32_t i = 0; i < MAX_BYTES; i++) {
		uint32_t byte = reader_u8(reader);

		if (byte < excluded)
			reader_fail(reader);
		sum += (byte - excluded) << i * HIGH_BITS;
		if (byte < 256 - HIGH)
			break;
	}
	return sum;
}

static int32_t signed_number(struct reader *reader, bool is_sparse)
{
	uint32_t value = java_number(reader, is_sparse);

	return (int32_t)(value >> 1 ^ -(value & 1));
}

bool java_line_of(const void *table, size_t size, bool is_sparse, uint32_t bci, uint32_t *ret_line, uint32_t *ret_start)
{
	struct reader reader = reader_of(table, size);
	int64_t at = 0, line = 0, best = -1;

	*ret_line = *ret_start = 0;
	for (uint32_t nr = 0;; nr++) {
		uint8_t byte = reader_u8(&reader);

		if (reader.bad)
			return false;
		if (!byte)
			return true;
		if (byte == ESCAPE) {
			at += signed_number(&reader, is_sparse);
			line += signed_number(&reader, is_sparse);
		} else {
			at += byte >> 3;
			line += byte & 7;
		}
		if (reader.bad || at < 0 || at > UINT16_MAX || line < 0 || line > UINT16_MAX)
			return false;
		if (at == 0 || !nr)
			*ret_start = (uint32_t)line;
		if (at <= bci && at >= best) { /* entries need not be sorted */
			best = at;
			*ret_line = (uint32_t)line;
		}
	}
}
