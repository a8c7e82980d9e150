// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"

#define MAX_TABLE_BYTES (1 << 20)
#define MAX_LINES (1 << 22)
#define MAX_SOURCE (4 << 20) /* characters before a position whose line is counted */
#define COUNT_STEP 16384

/* Seven bits a byte, the lowest first. */
static uint64_t read_bits(struct reader *reader)
{
	uint64_t bits = 0;
	uint32_t shift = 0;
	uint8_t byte;

	do {
		byte = reader_u8(reader);
		if (shift > 63)
			reader_fail(reader);
		else
			bits |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !reader->bad);
	return bits;
}

/* The lowest bit is the sign. */
static int64_t read_number(struct reader *reader)
{
	uint64_t bits = read_bits(reader);

	return (int64_t)(bits >> 1 ^ -(bits & 1));
}

/* SourcePosition: bit 0: is_external; 30 bits: offset + 1 in the script; 16 bits: number of the inlined function + 1. */
struct v8_position v8_lines_unpack(int64_t raw)
{
	struct v8_position position = { .offset = (int32_t)((uint64_t)raw >> 1 & 0x3fffffff) - 1,
					.inlined = (int32_t)((uint64_t)raw >> 31 & 0xffff) - 1 };

	if (raw & 1)
		position.offset = -1;
	return position;
}

int v8_lines_position(const struct v8_heap *heap, uint64_t table, uint32_t code_off, struct v8_position *ret_position)
{
	CLEANUP(freep) uint8_t *bytes = NULL;
	int64_t off = -1, position = 0; /* the first entry may be of the entry of a function, -1 */
	struct reader reader;
	uint64_t length;
	bool found = false;
	int err = v8_object_word(heap, table, heap->process->layout.array_data - 8, &length);

	if (err)
		return err;
	if (!v8_is_smi(length) || v8_smi(length) < 0 || v8_smi(length) > MAX_TABLE_BYTES)
		return -EBADMSG;
	if (!length)
		return -ENOENT;
	bytes = malloc((size_t)v8_smi(length));
	if (!bytes)
		return -ENOENT;
	err = v8_object_read(heap, table, heap->process->layout.array_data, bytes, (size_t)v8_smi(length));
	if (err)
		return err;
	reader = reader_of(bytes, (size_t)v8_smi(length));
	while (reader_left(&reader)) {
		off += (int64_t)(read_bits(&reader) >> heap->process->layout.position_bits); /* these say what kind of position it is */
		position += read_number(&reader);
		if (reader.bad)
			return -EBADMSG;
		if (off > (int64_t)code_off)
			break;
		*ret_position = v8_lines_unpack(position);
		found = true;
	}
	return found ? 0 : -ENOENT;
}

/* By the array of positions where lines end. */
static uint32_t line_of_ends(const struct v8_heap *heap, uint64_t ends, int32_t position)
{
	uint32_t low = 0, high;
	uint64_t word;

	if (v8_object_word(heap, ends, heap->process->layout.array_data - 8, &word) || !v8_is_smi(word) || v8_smi(word) <= 0 ||
	    v8_smi(word) > MAX_LINES)
		return 0;
	high = (uint32_t)v8_smi(word);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (v8_object_element(heap, ends, middle, &word) || !v8_is_smi(word))
			return 0;
		if (v8_smi(word) < position)
			low = middle + 1;
		else
			high = middle;
	}
	return low + 1;
}

/* By the source itself: V8 makes the array above only when it needs it. */
static uint32_t count_lines(const struct v8_heap *heap, uint64_t source, int32_t position)
{
	struct v8_characters characters;
	uint16_t some[COUNT_STEP];
	uint32_t line = 1, left = (uint32_t)position;

	if (v8_object_characters(heap, source, &characters) || left > characters.nr || left > MAX_SOURCE)
		return 0;
	while (left) {
		uint32_t nr = left < COUNT_STEP ? left : COUNT_STEP;

		if (heap->memory->read(heap->memory->arg, characters.at, some, (size_t)nr << characters.is_wide))
			return 0;
		for (uint32_t i = 0; i < nr; i++)
			line += (characters.is_wide ? some[i] : ((const uint8_t *)some)[i]) == '\n';
		characters.at += (uint64_t)nr << characters.is_wide;
		left -= nr;
	}
	return line;
}

uint32_t v8_lines_line(const struct v8_heap *heap, uint64_t script, int32_t position)
{
	const struct v8_layout *layout = &heap->process->layout;
	uint64_t ends, source;
	uint32_t line = 0;

	if (position < 0)
		return 0;
	if (!v8_object_word(heap, script, layout->script_line_ends, &ends) && v8_is_object(ends))
		line = line_of_ends(heap, ends, position);
	if (!line && !v8_object_word(heap, script, layout->script_source, &source))
		line = count_lines(heap, source, position);
	return line;
}
