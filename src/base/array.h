/* SPDX-License-Identifier: Apache-2.0 */
/* array: what several tables do with their arrays. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* How many of these ascending values are at most `value`: the last of them is the one before that. */
static inline uint32_t array_count_at_most(const uint64_t *values, uint32_t nr, uint64_t value)
{
	uint32_t lo = 0, hi = nr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (values[mid] <= value)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Makes room for one more item behind the `nr` that *array_ptr, a pointer to allocated memory or NULL, has: `first` at the beginning, then
 * twice as many, never more than `limit`. False: no memory, or the limit; the array stays as it was. */
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

/* Gives back what *array_ptr, a pointer to allocated memory, has behind its first `size` bytes (not 0), when that can be done. */
static inline void array_shrink(void *array_ptr, size_t size)
{
	void *smaller = realloc(*(void **)array_ptr, size);

	if (smaller)
		*(void **)array_ptr = smaller;
}
