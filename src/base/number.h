/* SPDX-License-Identifier: Apache-2.0 */
/* number: whole texts to numbers (no sign, no blanks, no rest, no overflow is let through), and sums that stay at the limit. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

/* Decimal. 0; -EINVAL when `text` is not a whole number; -ERANGE when it is above `max`. */
MUST_CHECK int number_u64(const char *text, uint64_t max, uint64_t *ret_value);
/* A hexadecimal number without 0x at *pos, which moves behind it. 0 or -EINVAL. */
MUST_CHECK int number_hex(const char **pos, const char *end, uint64_t *ret_value);

static inline int64_t number_sum(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}
