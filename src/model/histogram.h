/* SPDX-License-Identifier: Apache-2.0 */
/* histogram: counts of values in 64 half-open ranges, and the sum of the values. A zeroed struct is an empty histogram of powers of two.
 * Counts and sums that would overflow stay at the limit. */
#pragma once
#include <stdint.h>

#define HISTOGRAM_SLOTS 64 /* the last slot has no upper end in either scale */

enum histogram_scale {
	HISTOGRAM_LOG2,   /* slot 0: [0, 2), slot i: [2^i, 2^(i + 1)), as BPF programs count them */
	HISTOGRAM_LINEAR, /* slot i: [i, i + 1) */
	HISTOGRAM_SCALE_COUNT,
};

struct histogram {
	uint32_t scale; /* enum histogram_scale */
	uint32_t pad;   /* zero */
	uint64_t slots[HISTOGRAM_SLOTS];
	uint64_t sum;   /* sum of the values */
};

const char *histogram_scale_name(enum histogram_scale scale); /* "log2", "linear" */
uint32_t histogram_slot(enum histogram_scale scale, uint64_t value);
/* [*ret_low, *ret_high); UINT64_MAX where there is no upper end. */
void histogram_bounds(enum histogram_scale scale, uint32_t slot, uint64_t *ret_low, uint64_t *ret_high);
/* Adds `value` `count` times. */
void histogram_add(struct histogram *histogram, uint64_t value, uint64_t count);
/* Adds `from` to `to`; both must have the same scale. */
void histogram_merge(struct histogram *to, const struct histogram *from);
uint64_t histogram_count(const struct histogram *histogram); /* of all slots */
/* The first and last slot with a count; HISTOGRAM_SLOTS: the histogram is empty. */
uint32_t histogram_first(const struct histogram *histogram);
uint32_t histogram_last(const struct histogram *histogram);
