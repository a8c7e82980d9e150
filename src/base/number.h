/* SPDX-License-Identifier: Apache-2.0 */
/* number: strict conversion of texts to numbers (no sign, no blanks, nothing behind, no overflow), and saturating sums. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

/* Decimal. 0; -EINVAL: `text` is not a whole number; -ERANGE: it is above `max`. */
MUST_CHECK int number_u64(const char *text, uint64_t max, uint64_t *ret_value);
/* True: the line is "KEY:\tNUMBER", as in /proc/PID/fdinfo; otherwise *ret_value stays. */
bool number_of_field(const char *line, const char *key, uint64_t *ret_value);
/* Decimal, with or without a fraction of up to 9 digits: "12", "0.5". 0; -EINVAL: `text` is none; -ERANGE: it is above 10^15. */
MUST_CHECK int number_decimal(const char *text, double *ret_value);
/* Reads a hexadecimal number without 0x at *pos, and moves *pos behind it. 0 or -EINVAL. */
MUST_CHECK int number_hex(const char **pos, const char *end, uint64_t *ret_value);

static inline int64_t number_sum(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}
