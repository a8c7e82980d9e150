/* SPDX-License-Identifier: Apache-2.0 */
/* suffix: tests the end of a text. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* True if the first `size` bytes end with the suffix and have something before it. */
static inline bool has_suffix(const char *text, size_t size, const char *suffix)
{
	size_t suffix_size = strlen(suffix);

	return size > suffix_size && !memcmp(text + size - suffix_size, suffix, suffix_size);
}
