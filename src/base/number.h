/* SPDX-License-Identifier: Apache-2.0 */
/* number: whole texts to numbers. No sign, no blanks, no rest, no overflow is let through. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"

/* Decimal. 0; -EINVAL when `text` is not a whole number; -ERANGE when it is above `max`. */
MUST_CHECK int number_u64(const char *text, uint64_t max, uint64_t *ret_value);
/* A hexadecimal number without 0x at *pos, which moves behind it. 0 or -EINVAL. */
MUST_CHECK int number_hex(const char **pos, const char *end, uint64_t *ret_value);
