/* SPDX-License-Identifier: Apache-2.0 */
/* python_text: the text of a CPython str object in a process's memory. */
#pragma once
#include "runtime/python/python_layout.h"
#include "runtime/runtime.h"

#define PYTHON_PAGE_BYTES 4096

/* Reads `needed` bytes, and up to `max` as far as they stand in the same page, where reading them can not fail. What does not need a second
 * read then is the gain: most objects are small. */
MUST_CHECK int python_read_ahead(const struct runtime_memory *memory, uint64_t from, void *to, size_t needed, size_t max, size_t *ret_size);
/* The str at `object` as UTF-8 with a NUL, in `size` bytes: with U+2026 for what does not fit, and U+FFFD for each code point that is not
 * plain (utf8_is_plain) or is none (a lone surrogate, which Python has for an undecodable byte of a file name). In two reads at most, a
 * third for an instance of a class derived from str. 0; -EBADMSG: this is no str; what memory->read says. */
MUST_CHECK int python_text_read(const struct python_layout *layout, const struct runtime_memory *memory, uint64_t object, char *text,
				size_t size);
