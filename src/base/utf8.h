/* SPDX-License-Identifier: Apache-2.0 */
/* utf8: text of strangers, code point by code point (Unicode 15 table 3-7). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xfffd
#define UTF8_MAX_BYTES	 4

/* The code point at *pos, which moves behind it; *pos must be below `end`. Where the bytes are none, UTF8_REPLACEMENT for as many of them
 * as could have begun one (the Unicode standard's practice, and Python's). */
uint32_t utf8_next(const char **pos, const char *end);
/* The bytes of a valid code point; their number. */
size_t utf8_encode(uint32_t code, char bytes[UTF8_MAX_BYTES]);
/* False for what would break a line, drive a terminal or turn the writing direction: control characters (also C1), separators of lines and
 * paragraphs, direction marks. */
bool utf8_is_plain(uint32_t code);
