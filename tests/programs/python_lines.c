// SPDX-License-Identifier: Apache-2.0
/* python_lines: reads lines "FORM FIRST_LINE TABLE CODE_BYTES" from stdin (FORM: enum python_lines; TABLE: hexadecimal, or "-" for
 * none). For each prints a line of "OFFSET:LINE" for each instruction offset (they are even) whose line differs from the one before; "-"
 * for no line. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/python/python_lines.h"

struct code {
	unsigned int form;
	uint32_t first_line, code_bytes;
	uint8_t *table;
	size_t table_bytes;
};

static size_t unhex(const char *hex, uint8_t *bytes)
{
	size_t nr = 0;

	for (; sscanf(hex, "%2hhx", &bytes[nr]) == 1 && hex[1]; hex += 2)
		nr++;
	return nr;
}

static int32_t line_at(const struct code *code, uint32_t off)
{
	struct python_line_search search;
	size_t piece = off % 61 + 1; /* tables arrive in pieces: here in pieces of many sizes */

	python_lines_start(&search, code->form, code->first_line, off);
	for (size_t at = 0; at < code->table_bytes; at += piece)
		if (python_lines_feed(&search, code->table + at, piece < code->table_bytes - at ? piece : code->table_bytes - at))
			break;
	return python_lines_line(&search);
}

static void print_lines(const struct code *code)
{
	int32_t before = PYTHON_NO_LINE - 1;

	for (uint32_t off = 0; off < code->code_bytes; off += 2) {
		int32_t line = line_at(code, off);

		if (line != before)
			printf(line == PYTHON_NO_LINE ? "%s%" PRIu32 ":-" : "%s%" PRIu32 ":%" PRId32, off ? " " : "", off, line);
		before = line;
	}
	putchar('\n');
}

int main(void)
{
	CLEANUP(freep) char *text = NULL;
	size_t size = 0;

	while (getline(&text, &size, stdin) > 0) {
		CLEANUP(freep) char *hex = malloc(size);
		CLEANUP(freep) uint8_t *table = malloc(size);
		struct code code = { .table = table };

		if (!hex || !table ||
		    sscanf(text, "%u %" SCNu32 " %s %" SCNu32, &code.form, &code.first_line, hex, &code.code_bytes) != 4) {
			fprintf(stderr, "python_lines: bad line: %.80s\n", text);
			return 1;
		}
		code.table_bytes = unhex(hex, table);
		print_lines(&code);
	}
	return 0;
}
