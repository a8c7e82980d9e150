/* SPDX-License-Identifier: Apache-2.0 */
/* histogram: how many values fell into each of 64 half-open ranges, and their sum. A struct of zeros is an empty one, of powers of two.
 * Counts and sums that would overflow stay at the limit. */
#pragma once
#include <stdint.h>

#define HISTOGRAM_SLOTS 64 /* the last one of either scale has no upper end */

enum histogram_scale {
	HISTOGRAM_LOG2,   /* slot 0: [0, 2), slot i: [2^i, 2^(i + 1)), as BPF programs count them */
	HISTOGRAM_LINEAR, /* slot i: [i, i + 1) */
	HISTOGRAM_SCALE_COUNT,
};

struct histogram {
	uint32_t scale; /* enum histogram_scale */
	uint32_t pad;   /* zero */
	uint64_t slots[HISTOGRAM_SLOTS];
	uint64_t sum;   /* of the values */
};

const char *histogram_scale_name(enum histogram_scale scale); /* "log2", "linear" */
uint32_t histogram_slot(enum histogram_scale scale, uint64_t value);
/* [*ret_low, *ret_high); UINT64_MAX where there is no upper end. */
void histogram_bounds(enum histogram_scale scale, uint32_t slot, uint64_t *ret_low, uint64_t *ret_high);
/* `count` times the value. */
void histogram_add(struct histogram *histogram, uint64_t value, uint64_t count);
/* Both are of one scale. */
void histogram_merge(struct histogram *to, const struct histogram *from);
uint64_t histogram_count(const struct histogram *histogram); /* of all slots */
/* HISTOGRAM_SLOTS: it is empty. */
uint32_t histogram_first(const struct histogram *histogram);
uint32_t histogram_last(const struct histogram *histogram);
