// SPDX-License-Identifier: Apache-2.0
/* python_lines: formats from Objects/lnotab_notes.txt of 3.6-3.10, Objects/locations.md of 3.11 and newer. Edge cases are as in
 * PyCode_Addr2Line in Objects/codeobject.c of each version. */
#include "runtime/python/python_lines.h"

#include <errno.h>

#define NO_LINE_DELTA (-128)                   /* 3.10: the range has no line */
#define ENTRY_BEGINS 0x80                      /* 3.11: no other byte has this bit */
#define KIND_ONE_LINE_0 10                     /* to 12: the line grows by kind - 10, then columns */
#define KIND_NO_COLUMNS 13
#define KIND_LONG 14
#define KIND_NONE 15
#define NUMBER_BITS 6                          /* in each byte of a number; another bit says that more follow */
#define NUMBER_GOES_ON 0x40
#define MAX_SHIFT (5 * NUMBER_BITS)            /* lines are 32 bits */

void python_lines_start(struct python_line_search *search, enum python_lines form, uint32_t first_line, uint32_t code_off)
{
	*search =
	    (struct python_line_search){ .form = (uint8_t)form, .code_off = code_off, .line = first_line, .range_line = PYTHON_NO_LINE };
}

/* Adds the next range. */
static int range(struct python_line_search *search, uint32_t length, bool has_line, int64_t delta)
{
	search->has_line |= search->range_line >= 0;
	search->line += delta;
	search->end += length;
	search->range_line = has_line ? search->line : PYTHON_NO_LINE;
	search->is_found = search->end > search->code_off;
	return search->is_found ? PYTHON_LINES_FOUND : 0;
}

static int bad(struct python_line_search *search)
{
	search->is_bad = true;
	return -EBADMSG;
}

/* Adds a point: the line changes at an offset and is valid up to the next. */
static int lnotab_pair(struct python_line_search *search, uint8_t bytes, int8_t delta)
{
	search->end += bytes;
	search->is_found = search->end > search->code_off;
	if (!search->is_found)
		search->line += delta;
	return search->is_found ? PYTHON_LINES_FOUND : 0;
}

static int pair_byte(struct python_line_search *search, uint8_t byte)
{
	search->is_begun = !search->is_begun;
	if (search->is_begun) {
		search->length = byte;
		return 0;
	}
	if (search->form == PYTHON_LINES_LNOTAB)
		return lnotab_pair(search, (uint8_t)search->length, (int8_t)byte);
	return range(search, search->length, (int8_t)byte != NO_LINE_DELTA, (int8_t)byte == NO_LINE_DELTA ? 0 : (int8_t)byte);
}

static int entry_begin(struct python_line_search *search, uint8_t byte)
{
	unsigned int kind = byte >> 3 & 0xf;

	if (search->in_number)
		return bad(search);
	search->is_begun = true;
	search->length = ((byte & 7U) + 1) * 2;
	if (kind != KIND_NO_COLUMNS && kind != KIND_LONG)
		return range(search, search->length, kind != KIND_NONE,
			     kind >= KIND_ONE_LINE_0 && kind < KIND_NO_COLUMNS ? kind - KIND_ONE_LINE_0 : 0);
	search->in_number = true;
	search->value = 0;
	search->shift = 0;
	return 0;
}

static int entry_byte(struct python_line_search *search, uint8_t byte)
{
	int64_t delta;

	if (byte & ENTRY_BEGINS)
		return entry_begin(search, byte);
	if (!search->is_begun || (search->in_number && search->shift > MAX_SHIFT))
		return bad(search);
	if (!search->in_number)
		return 0; /* end lines and columns */
	search->value |= (uint64_t)(byte & (NUMBER_GOES_ON - 1)) << search->shift;
	search->shift += NUMBER_BITS;
	if (byte & NUMBER_GOES_ON)
		return 0;
	search->in_number = false;
	delta = (int64_t)(search->value >> 1);
	return range(search, search->length, true, search->value & 1 ? -delta : delta);
}

int python_lines_feed(struct python_line_search *search, const uint8_t *bytes, size_t size)
{
	int result = search->is_bad ? -EBADMSG : search->is_found ? PYTHON_LINES_FOUND : 0;

	for (size_t i = 0; !result && i < size; i++)
		result = search->form == PYTHON_LINES_311 ? entry_byte(search, bytes[i]) : pair_byte(search, bytes[i]);
	return result;
}

int32_t python_lines_line(const struct python_line_search *search)
{
	int64_t line = search->form == PYTHON_LINES_LNOTAB ? search->line : search->is_found ? search->range_line : PYTHON_NO_LINE;

	return search->is_bad || line < 0 || line > INT32_MAX ? PYTHON_NO_LINE : (int32_t)line;
}

bool python_lines_is_before_first(const struct python_line_search *search)
{
	return search->is_found && search->form != PYTHON_LINES_LNOTAB && search->range_line < 0 && !search->has_line;
}
