/* SPDX-License-Identifier: Apache-2.0 */
/* python_text: reads a CPython str object in a process's memory. */
#pragma once
#include "runtime/python/python_layout.h"
#include "runtime/runtime.h"

#define PYTHON_PAGE_BYTES 4096

/* Reads `needed` bytes, and up to `max` as long as they are in the same page, where the read cannot fail. This saves the second read of
 * most objects, which are small. */
MUST_CHECK int python_read_ahead(const struct runtime_memory *memory, uint64_t from, void *to, size_t needed, size_t max, size_t *ret_size);
/* Reads the str at `object` as UTF-8 with a NUL into `size` bytes. A text that does not fit ends in U+2026. U+FFFD replaces each code point
 * that is not plain (utf8_is_plain) or not valid (a lone surrogate, which Python has for an undecodable byte of a file name). Takes at most
 * two reads, a third for an instance of a class derived from str. 0; -EBADMSG: not a str; or the result of memory->read. */
MUST_CHECK int python_text_read(const struct python_layout *layout, const struct runtime_memory *memory, uint64_t object, char *text,
				size_t size);
