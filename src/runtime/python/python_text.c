// SPDX-License-Identifier: Apache-2.0
/* python_text: layouts from Include/cpython/unicodeobject.h (3.6: Include/unicodeobject.h). A str is one of: a PyASCIIObject followed by
 * its bytes; a PyCompactUnicodeObject followed by code points of 1, 2 or 4 bytes; a PyUnicodeObject, which adds a pointer to the code
 * points (in a derived class, or made by an old C function). */
#include "runtime/python/python_text.h"

#include <errno.h>
#include <string.h>

#include "base/reader.h"
#include "base/utf8.h"

#define MAX_HEADER_BYTES 256
#define MAX_UNITS_BYTES (RUNTIME_FILE_BYTES * 4)
#define AHEAD_BYTES 256        /* beyond the header: enough for nearly all names and paths */
#define MAX_LENGTH (1LL << 40) /* code points: more than any memory has */
#define ELLIPSIS 0x2026
#define ELLIPSIS_BYTES 3

/* The word `state`: interned, 2 bits; kind, 3; compact; ascii. In free-threaded builds of 3.14 and newer `interned` is a whole byte. In
 * others the first byte contains a kind that is not 0; so a first byte below 4 means a free-threaded build. */
#define INTERNED_BITS 2
#define INTERNED_BYTE_BITS 8
#define KIND_MASK 7
#define COMPACT 8
#define ASCII 16

struct str {
	uint64_t units;        /* address of the code points */
	uint64_t length;       /* in code points */
	unsigned int kind;     /* bytes per code point: 1, 2, 4 */
};

int python_read_ahead(const struct runtime_memory *memory, uint64_t from, void *to, size_t needed, size_t max, size_t *ret_size)
{
	size_t in_page = PYTHON_PAGE_BYTES - from % PYTHON_PAGE_BYTES, size = in_page < needed ? needed : in_page < max ? in_page : max;
	int err = memory->read(memory->arg, from, to, size);

	if (err == -ENODATA && size > needed) { /* a copy, which ends earlier */
		size = needed;
		err = memory->read(memory->arg, from, to, size);
	}
	if (!err)
		*ret_size = size;
	return err;
}

static unsigned int state_bits(uint32_t state)
{
	return (state & 0xff) >> INTERNED_BITS ? state >> INTERNED_BITS : state >> INTERNED_BYTE_BITS;
}

static int read_str(const struct python_layout *layout, const struct runtime_memory *memory, uint64_t object, const uint8_t *bytes,
		    size_t size, struct str *ret_str)
{
	struct reader length = reader_of(bytes, size), state = length;
	struct str str;
	unsigned int bits;

	reader_skip(&length, layout->unicode_length);
	str.length = reader_u64(&length);
	reader_skip(&state, layout->unicode_state);
	bits = state_bits(reader_u32(&state));
	str.kind = bits & KIND_MASK;
	if (length.bad || state.bad || str.length > MAX_LENGTH || (str.kind != 1 && str.kind != 2 && str.kind != 4) ||
	    (bits & ASCII && str.kind != 1))
		return -EBADMSG;
	str.units = object + (bits & ASCII ? layout->unicode_ascii_bytes : layout->unicode_compact_bytes);
	if (!(bits & COMPACT)) {
		int err = memory->read(memory->arg, object + layout->unicode_compact_bytes, &str.units, sizeof(str.units));

		if (err)
			return err;
	}
	*ret_str = str;
	return 0;
}

static uint32_t unit(const uint8_t *units, unsigned int kind, size_t i)
{
	uint32_t code = 0;

	memcpy(&code, units + i * kind, kind);
	if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || !utf8_is_plain(code))
		return UTF8_REPLACEMENT;
	return code;
}

/* Writes the first `nr` code points of a str of `length`. */
static void write_text(const uint8_t *units, unsigned int kind, uint64_t length, size_t nr, char *text, size_t size)
{
	size_t used = 0, cut = 0; /* `cut`: the last position with room for an ellipsis */

	for (size_t i = 0; i < nr; i++) {
		char bytes[UTF8_MAX_BYTES];
		size_t more = utf8_encode(unit(units, kind, i), bytes);

		if (used + more >= size)
			break;
		memcpy(text + used, bytes, more);
		used += more;
		if (used + ELLIPSIS_BYTES < size)
			cut = used;
		length--;
	}
	if (length > 0)
		used = cut + utf8_encode(ELLIPSIS, text + cut);
	text[used] = '\0';
}

int python_text_read(const struct python_layout *layout, const struct runtime_memory *memory, uint64_t object, char *text, size_t size)
{
	uint8_t bytes[MAX_HEADER_BYTES + MAX_UNITS_BYTES];
	const uint8_t *units = bytes;
	size_t got, have = 0, nr;
	struct str str;
	int err;

	if (object < PYTHON_PAGE_BYTES || layout->unicode_ascii_bytes > layout->unicode_compact_bytes ||
	    layout->unicode_compact_bytes > MAX_HEADER_BYTES)
		return -EBADMSG;
	err = python_read_ahead(memory, object, bytes, layout->unicode_ascii_bytes, layout->unicode_compact_bytes + AHEAD_BYTES, &got);
	if (!err)
		err = read_str(layout, memory, object, bytes, got, &str);
	if (err)
		return err;
	nr = str.length < size ? str.length : size;
	if (nr * str.kind > MAX_UNITS_BYTES)
		nr = MAX_UNITS_BYTES / str.kind;
	if (str.units - object <= got) { /* they begin within what was read */
		units = bytes + (str.units - object);
		have = got - (str.units - object);
	}
	if (have < nr * str.kind) {
		units = bytes;
		err = memory->read(memory->arg, str.units, bytes, nr * str.kind);
		if (err)
			return err;
	}
	write_text(units, str.kind, str.length, nr, text, size);
	return 0;
}
