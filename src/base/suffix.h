/* SPDX-License-Identifier: Apache-2.0 */
/* suffix: how a text ends. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Is there something, and then the suffix, in the first `size` bytes? */
static inline bool has_suffix(const char *text, size_t size, const char *suffix)
{
	size_t suffix_size = strlen(suffix);

	return size > suffix_size && !memcmp(text + size - suffix_size, suffix, suffix_size);
}
