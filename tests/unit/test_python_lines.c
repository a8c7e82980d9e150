// SPDX-License-Identifier: Apache-2.0
/* CPython's line tables: those of one function compiled by 3.6, 3.10 and 3.12, with the lines that they gave, and tables that no Python
 * would write. tests/system/python_lines.py compares whole libraries. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/python/python_lines.h"

#define NO PYTHON_NO_LINE

struct change {
	uint32_t off;
	int32_t line; /* from this offset on */
};

struct table {
	enum python_lines form;
	const char *hex;
	uint32_t code_bytes;
	struct change changes[48];
};

/* A function of many lines, 200 empty ones, `with` and a lambda. */
static const struct table tables[] = {
	{ PYTHON_LINES_LNOTAB,
	  "00020201040108010e0102010c020602127f004a0602",
	  94,
	  { { 0, 3 }, { 2, 4 }, { 6, 5 }, { 14, 6 }, { 28, 7 }, { 30, 8 }, { 42, 10 }, { 48, 12 }, { 66, 213 }, { 72, 215 } } },
	{ PYTHON_LINES_310,
	  "02020401020102ff04ff0c0302010a01060206020efe060208fe007f064c0a0202ff24ff",
	  132,
	  { { 0, 3 },
	    { 2, 4 },
	    { 6, 5 },
	    { 8, 4 },
	    { 10, 3 },
	    { 14, 6 },
	    { 26, 7 },
	    { 28, 8 },
	    { 38, 10 },
	    { 44, 12 },
	    { 50, 10 },
	    { 64, 12 },
	    { 70, 10 },
	    { 78, 213 },
	    { 84, 215 },
	    { 94, 214 },
	    { 96, 213 } } },
	{ PYTHON_LINES_311,
	  "f88000e0090ad9090a8831d80b0cf303010a0ef103020a0e8041f406000e1390318b58f20006051b8801f00205091bd80c0d901189468841f408001217907193"
	  "18f60502111bd81516f203001213f00002111b8841f1"
	  "0002111bf00906051bf05e06000a0bf0000205178861e30c15f003010917f703020517f100020517f9f2570602111bf8e4111690719318f60502111bd81516f2"
	  "03001213f00002111b8841f10002111bf9f2000211"
	  "1bfaf75606020517f000020517fa",
	  258,
	  { { 0, NO },	  { 2, 1 },	{ 4, 3 },     { 6, 4 },	   { 12, 5 },	{ 14, 4 },    { 22, 3 },   { 28, 6 },
	    { 56, 7 },	  { 58, 8 },	{ 68, 12 },   { 88, 10 },  { 102, 11 }, { 104, 10 },  { 118, 6 },  { 120, 213 },
	    { 126, 215 }, { 134, 214 }, { 136, 213 }, { 156, NO }, { 160, 10 }, { 166, NO },  { 168, 12 }, { 188, 10 },
	    { 202, 11 },  { 204, 10 },	{ 218, NO },  { 222, 10 }, { 228, NO }, { 234, 213 }, { 252, NO } } },
};

static size_t unhex(const char *hex, uint8_t *bytes)
{
	size_t nr = strlen(hex) / 2;

	for (size_t i = 0; i < nr; i++)
		bytes[i] = (uint8_t)strtoul((char[]){ hex[2 * i], hex[2 * i + 1], 0 }, NULL, 16);
	return nr;
}

/* Returns the result of the last call; *ret_search is the state it left. The bytes are in memory of exactly that size, for the
 * sanitizer. */
static int search_in(enum python_lines form, uint32_t first_line, uint32_t off, const uint8_t *bytes, size_t size, size_t piece,
		     struct python_line_search *ret_search)
{
	CLEANUP(freep) uint8_t *copy = malloc(size + !size);
	int result = 0;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	python_lines_start(ret_search, form, first_line, off);
	for (size_t at = 0; at < size && !result; at += piece)
		result = python_lines_feed(ret_search, copy + at, piece < size - at ? piece : size - at);
	return result;
}

static int32_t line_of_hex(enum python_lines form, uint32_t first_line, uint32_t off, const char *hex)
{
	struct python_line_search search;
	uint8_t bytes[1024];
	int result = search_in(form, first_line, off, bytes, unhex(hex, bytes), sizeof(bytes), &search);

	return result < 0 ? result : python_lines_line(&search);
}

static void real_tables_have_their_lines(void **state)
{
	for (size_t t = 0; t < ARRAY_SIZE(tables); t++) {
		const struct table *table = &tables[t];
		uint8_t bytes[1024];
		size_t size = unhex(table->hex, bytes);

		for (size_t piece = 1; piece <= size; piece += 1 + piece / 2) {
			for (uint32_t off = 0, i = 0; off < table->code_bytes; off++) {
				struct python_line_search search;

				if (table->changes[i + 1].off && off >= table->changes[i + 1].off)
					i++;
				assert_true(search_in(table->form, 1, off, bytes, size, piece, &search) >= 0);
				assert_int_equal(python_lines_line(&search), table->changes[i].line);
				assert_int_equal(python_lines_is_before_first(&search), off < 2 && table->changes[0].line == NO);
			}
		}
	}
}

static void behind_the_last_instruction(void **state)
{
	assert_int_equal(line_of_hex(PYTHON_LINES_LNOTAB, 1, 1000000, tables[0].hex), 215); /* keeps the line */
	assert_int_equal(line_of_hex(PYTHON_LINES_310, 1, 132, tables[1].hex), NO);
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 1, 258, tables[2].hex), NO);
	assert_int_equal(line_of_hex(PYTHON_LINES_LNOTAB, 7, 0, ""), 7);
	assert_int_equal(line_of_hex(PYTHON_LINES_310, 7, 0, ""), NO);
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 7, 0, ""), NO);
}

static void each_form_of_entry(void **state)
{
	assert_int_equal(line_of_hex(PYTHON_LINES_LNOTAB, 100, 0, "0002000302ff"), 105); /* lines without bytes */
	assert_int_equal(line_of_hex(PYTHON_LINES_LNOTAB, 100, 2, "0002000302ff"), 104);
	assert_int_equal(line_of_hex(PYTHON_LINES_LNOTAB, 100, 299, "ff002d05"), 100);
	assert_int_equal(line_of_hex(PYTHON_LINES_LNOTAB, 100, 300, "ff002d05"), 105);
	assert_int_equal(line_of_hex(PYTHON_LINES_LNOTAB, 300, 4, "0280028004"), 300 - 256); /* an odd trailing byte is ignored */
	assert_int_equal(line_of_hex(PYTHON_LINES_310, 100, 0, "028004010201"), NO);
	assert_int_equal(line_of_hex(PYTHON_LINES_310, 100, 2, "028004010201"), 101);
	/* a range in the middle of a line's way */
	assert_int_equal(line_of_hex(PYTHON_LINES_310, 300, 2, "020100810281028004ff"), 300 + 1 - 127 - 127);
	assert_int_equal(line_of_hex(PYTHON_LINES_310, 300, 4, "020100810281028004ff"), NO);
	assert_int_equal(line_of_hex(PYTHON_LINES_310, 300, 6, "020100810281028004ff"), 300 + 1 - 127 - 127 - 1);
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 10, 0, "8000"), 10);	     /* short */
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 10, 0, "d80102"), 11);	     /* one line, forward by 1 */
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 10, 2, "d80102e00102"), 13);  /* ... by 2 */
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 10, 15, "ef04"), 12);	     /* of 16 bytes */
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 10, 0, "e805"), 8);	     /* no columns, back by 2 */
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 10, 0, "f0467f"), NO);  /* a number cut off by the table's end */
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 10, 0, "f0464201010101"), 10 + ((6 | 2 << 6 | 1 << 12) >> 1)); /* long */
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 10, 0, "f8"), NO);
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 10, 2, "f8d80102"), 11);
}

static void tables_that_no_python_writes(void **state)
{
	struct python_line_search search;
	uint8_t bytes[] = { 0x80 };

	assert_int_equal(line_of_hex(PYTHON_LINES_311, 1, 0, "00"), -EBADMSG);		   /* the middle of an entry */
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 1, 0, "e8f8"), -EBADMSG);	   /* an entry byte within a number */
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 1, 0, "e87f7f7f7f7f7f7f00"), -EBADMSG); /* a number that does not end */
	assert_int_equal(line_of_hex(PYTHON_LINES_311, 1, 0, "e87f7f7f7f7f3f"), NO);	   /* one that ends, for no line */
	assert_int_equal(line_of_hex(PYTHON_LINES_310, 5, 0, "02f0"), NO);		   /* below the first line */
	assert_int_equal(line_of_hex(PYTHON_LINES_LNOTAB, 5, 0, "00f0"), NO);
	assert_int_equal(line_of_hex(PYTHON_LINES_LNOTAB, UINT32_MAX, 0, "00f0"), NO);
	/* After an error all later calls fail. */
	python_lines_start(&search, PYTHON_LINES_311, 1, 0);
	assert_int_equal(python_lines_feed(&search, (const uint8_t *)"\1", 1), -EBADMSG);
	assert_int_equal(python_lines_feed(&search, bytes, 1), -EBADMSG);
	assert_int_equal(python_lines_line(&search), NO);
	/* After a result later calls change nothing. */
	python_lines_start(&search, PYTHON_LINES_311, 1, 0);
	assert_int_equal(python_lines_feed(&search, bytes, 1), PYTHON_LINES_FOUND);
	assert_int_equal(python_lines_feed(&search, (const uint8_t *)"\xd8", 1), PYTHON_LINES_FOUND);
	assert_int_equal(python_lines_line(&search), 1);
}

/* Any bytes give some line or none; in pieces the same as at once. */
static void random_bytes(void **state)
{
	uint32_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct python_line_search whole, pieces;
		uint8_t bytes[64];
		uint32_t off;
		size_t size;

		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * 1664525 + 1013904223;
			bytes[i] = (uint8_t)(seed >> 24);
		}
		off = bytes[0] * (bytes[1] & 1 ? 1U : 1U << 24);
		size = bytes[2] % (sizeof(bytes) - 3);
		assert_int_equal(search_in(round % 3, bytes[1] * 0x1010101U, off, bytes + 3, size, size + 1, &whole),
				 search_in(round % 3, bytes[1] * 0x1010101U, off, bytes + 3, size, 1 + bytes[0] % 7, &pieces));
		assert_int_equal(python_lines_line(&whole), python_lines_line(&pieces));
		assert_true(python_lines_line(&whole) >= NO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_tables_have_their_lines),
		cmocka_unit_test(behind_the_last_instruction),
		cmocka_unit_test(each_form_of_entry),
		cmocka_unit_test(tables_that_no_python_writes),
		cmocka_unit_test(random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
