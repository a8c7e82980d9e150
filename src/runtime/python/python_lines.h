/* SPDX-License-Identifier: Apache-2.0 */
/* python_lines: the line that a CPython code object's table has for an offset in its instructions. The table is fed in pieces of any size,
 * so it need not be held; its bytes are a stranger's. All three forms that python_layout.h names. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "runtime/python/python_layout.h"

#define PYTHON_NO_LINE (-1)
#define PYTHON_LINES_FOUND 1

struct python_line_search { /* one search; private but for the functions below */
	int64_t line;      /* as computed so far: deltas add up also over what has no line */
	int64_t range_line; /* of the latest range, or PYTHON_NO_LINE */
	uint64_t end;      /* of the latest range: the offset behind it */
	uint64_t value;    /* of a number that is being read */
	uint32_t code_off; /* searched */
	uint32_t length;   /* 3.11: of the range whose line is being read; before: the pair's first byte */
	uint8_t form;      /* enum python_lines */
	uint8_t shift;
	bool is_begun;     /* 3.11: an entry was there; before: the pair's first byte was there */
	bool in_number;
	bool is_found, is_bad;
	bool has_line;     /* a range before the latest has a line */
};

void python_lines_start(struct python_line_search *search, enum python_lines form, uint32_t first_line, uint32_t code_off);
/* The next bytes of the table. PYTHON_LINES_FOUND: no more are needed; 0: they are; -EBADMSG: this is no such table. */
MUST_CHECK int python_lines_feed(struct python_line_search *search, const uint8_t *bytes, size_t size);
/* What the interpreter says (PyCode_Addr2Line) by the bytes that were fed: a line, or PYTHON_NO_LINE. */
int32_t python_lines_line(const struct python_line_search *search);
/* The offset has no line, and nothing before it has one: the frame has only just been entered. */
bool python_lines_is_before_first(const struct python_line_search *search);
