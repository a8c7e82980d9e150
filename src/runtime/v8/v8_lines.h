/* SPDX-License-Identifier: Apache-2.0 */
/* v8_lines: V8's tables of source positions (codegen/source-position-table.cc), and lines of a script. */
#pragma once
#include "runtime/v8/v8_object.h"

struct v8_position {
	int32_t offset;   /* in the script; -1: not known */
	int32_t inlined;  /* number of the inlined function; -1: none */
};

/* The last position at or before `code_off`. 0: *ret_position; -ENOENT: the table says nothing there; -EBADMSG; or the error of the
 * read. */
MUST_CHECK int v8_lines_position(const struct v8_heap *heap, uint64_t table, uint32_t code_off, struct v8_position *ret_position);
/* A word of a table: position and number of the inlined function. */
struct v8_position v8_lines_unpack(int64_t raw);
/* The line, from 1 on, of a position in a script. 0: not known. */
uint32_t v8_lines_line(const struct v8_heap *heap, uint64_t script, int32_t position);
