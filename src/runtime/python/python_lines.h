/* SPDX-License-Identifier: Apache-2.0 */
/* python_lines: looks up an offset of the instructions in the line table of a CPython code object. The table is fed in pieces of any size,
 * so it need not be kept in memory; its bytes are untrusted. Supports all three formats of python_layout.h. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "runtime/python/python_layout.h"

#define PYTHON_NO_LINE (-1)
#define PYTHON_LINES_FOUND 1

struct python_line_search { /* one search; use only the functions below */
	int64_t line;      /* current line: deltas also add up over ranges without a line */
	int64_t range_line; /* of the latest range, or PYTHON_NO_LINE */
	uint64_t end;      /* of the latest range: the offset behind it */
	uint64_t value;    /* the number that is being read */
	uint32_t code_off; /* the searched offset */
	uint32_t length;   /* 3.11: length of the range whose line is being read; before: first byte of the pair */
	uint8_t form;      /* enum python_lines */
	uint8_t shift;
	bool is_begun;     /* 3.11: an entry has begun; before: the pair's first byte was read */
	bool in_number;
	bool is_found, is_bad;
	bool has_line;     /* a range before the latest has a line */
};

void python_lines_start(struct python_line_search *search, enum python_lines form, uint32_t first_line, uint32_t code_off);
/* Feeds the next bytes of the table. PYTHON_LINES_FOUND: no more are needed; 0: more are needed; -EBADMSG: not a line table. */
MUST_CHECK int python_lines_feed(struct python_line_search *search, const uint8_t *bytes, size_t size);
/* The interpreter's result (PyCode_Addr2Line), from the bytes that were fed: a line, or PYTHON_NO_LINE. */
int32_t python_lines_line(const struct python_line_search *search);
/* True: the offset has no line, and no offset before it has one: the frame was just entered. */
bool python_lines_is_before_first(const struct python_line_search *search);
