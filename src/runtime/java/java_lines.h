/* SPDX-License-Identifier: Apache-2.0 */
/* java_lines: HotSpot's packed numbers (compressedStream.cpp, unsigned5.hpp) and what consists of them: line number tables and scopes. All
 * bytes are untrusted. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/reader.h"

/* A number of one to five bytes; `is_sparse`: in which the byte 0 does not occur (20 and newer). */
uint32_t java_number(struct reader *reader, bool is_sparse);
/* The line at a bytecode index: that of the last entry at or before it. *ret_start: the line of the first bytecode. 0: none. False: the
 * table does not end within these bytes, or makes no sense. */
MUST_CHECK bool java_line_of(const void *table, size_t size, bool is_sparse, uint32_t bci, uint32_t *ret_line, uint32_t *ret_start);
