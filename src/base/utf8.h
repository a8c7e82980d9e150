/* SPDX-License-Identifier: Apache-2.0 */
/* utf8: decodes untrusted text, code point by code point (Unicode 15 table 3-7). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT 0xfffd
#define UTF8_MAX_BYTES	 4

/* Reads the code point at *pos, and moves *pos behind it; *pos must be below `end`. For invalid bytes it returns UTF8_REPLACEMENT and skips
 * as many as could have begun a code point (the Unicode standard's practice, and Python's). */
uint32_t utf8_next(const char **pos, const char *end);
/* Writes the bytes of a valid code point; returns their number. */
size_t utf8_encode(uint32_t code, char bytes[UTF8_MAX_BYTES]);
/* False for characters that break a line, control a terminal or change the writing direction: control characters (also C1), line and
 * paragraph separators, direction marks. */
bool utf8_is_plain(uint32_t code);
/* Appends a valid code point to the *used bytes of NUL-terminated text in `size`; UTF8_REPLACEMENT, if it is not plain. False: there is no
 * room for it, and nothing is written. */
bool utf8_append(char *to, size_t size, size_t *used, uint32_t code);
/* Appends `nr` untrusted bytes so, as far as there is room. */
void utf8_append_text(char *to, size_t size, const char *bytes, size_t nr);
