/* SPDX-License-Identifier: Apache-2.0 */
/* array: helpers for growing and searching arrays. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Returns how many of these items, each of which begins with an ascending value, have one that is at most `value`. The last of them is at
 * that index minus 1. */
static inline uint32_t array_count_starts(const void *items, uint32_t nr, size_t item_bytes, uint64_t value)
{
	uint32_t lo = 0, hi = nr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (*(const uint64_t *)((const char *)items + mid * item_bytes) <= value)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The same of the values alone. */
static inline uint32_t array_count_at_most(const uint64_t *values, uint32_t nr, uint64_t value)
{
	return array_count_starts(values, nr, sizeof(*values), value);
}

/* Makes room for one more item after the first `nr`. *array_ptr points to allocated memory or is NULL. The capacity starts at `first` and
 * doubles, up to `limit`. False: no memory, or the limit is reached; the array is unchanged. */
static inline bool array_grow(void *array_ptr, uint32_t nr, uint32_t *max, size_t item_bytes, uint32_t first, uint32_t limit)
{
	uint64_t bigger = *max ? (uint64_t)*max * 2 : first;
	void *grown;

	if (nr < *max)
		return true;
	grown = bigger > limit ? NULL : realloc(*(void **)array_ptr, bigger * item_bytes);
	if (!grown)
		return false;
	*(void **)array_ptr = grown;
	*max = (uint32_t)bigger;
	return true;
}

/* Frees the memory behind the first `size` bytes (not 0) of *array_ptr, if realloc can. */
static inline void array_shrink(void *array_ptr, size_t size)
{
	void *smaller = realloc(*(void **)array_ptr, size);

	if (smaller)
		*(void **)array_ptr = smaller;
}
