// SPDX-License-Identifier: Apache-2.0
#include "model/histogram.h"

#include <stdbool.h>

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

const char *histogram_scale_name(enum histogram_scale scale)
{
	static const char *const names[] = { [HISTOGRAM_LOG2] = "log2", [HISTOGRAM_LINEAR] = "linear" };

	return names[scale];
}

uint32_t histogram_slot(enum histogram_scale scale, uint64_t value)
{
	uint64_t slot = value;

	if (scale == HISTOGRAM_LOG2)
		slot = value ? 63 - (uint64_t)__builtin_clzll(value) : 0;
	return slot < HISTOGRAM_SLOTS ? (uint32_t)slot : HISTOGRAM_SLOTS - 1;
}

void histogram_bounds(enum histogram_scale scale, uint32_t slot, uint64_t *ret_low, uint64_t *ret_high)
{
	bool is_last = slot == HISTOGRAM_SLOTS - 1;

	if (scale == HISTOGRAM_LINEAR) {
		*ret_low = slot;
		*ret_high = is_last ? UINT64_MAX : (uint64_t)slot + 1;
	} else {
		*ret_low = slot ? 1ULL << slot : 0;
		*ret_high = is_last ? UINT64_MAX : 2ULL << slot;
	}
}

void histogram_add(struct histogram *histogram, uint64_t value, uint64_t count)
{
	uint64_t *slot = &histogram->slots[histogram_slot(histogram->scale, value)], sum;

	*slot = sum_of(*slot, count);
	histogram->sum = __builtin_mul_overflow(value, count, &sum) ? UINT64_MAX : sum_of(histogram->sum, sum);
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	for (uint32_t i = 0; i < HISTOGRAM_SLOTS; i++)
		to->slots[i] = sum_of(to->slots[i], from->slots[i]);
	to->sum = sum_of(to->sum, from->sum);
}

uint64_t histogram_count(const struct histogram *histogram)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < HISTOGRAM_SLOTS; i++)
		count = sum_of(count, histogram->slots[i]);
	return count;
}

uint32_t histogram_first(const struct histogram *histogram)
{
	uint32_t slot = 0;

	while (slot < HISTOGRAM_SLOTS && !histogram->slots[slot])
		slot++;
	return slot;
}

uint32_t histogram_last(const struct histogram *histogram)
{
	for (uint32_t slot = HISTOGRAM_SLOTS; slot-- > 0;) {
		if (histogram->slots[slot])
			return slot;
	}
	return HISTOGRAM_SLOTS;
}
