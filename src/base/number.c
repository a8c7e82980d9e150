// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"

#include <errno.h>
#include <stdbool.h>

int number_u64(const char *text, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;
	bool over = false;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		over |= __builtin_mul_overflow(value, 10, &value);
		over |= __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value);
	}
	if (over || value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int number_hex(const char **pos, const char *end, uint64_t *ret_value)
{
	const char *at = *pos;
	uint64_t value = 0;

	for (; at < end && hex_digit(*at) >= 0; at++) {
		if (at - *pos == 16)
			return -EINVAL;
		value = value << 4 | (uint64_t)hex_digit(*at);
	}
	if (at == *pos)
		return -EINVAL;
	*pos = at;
	*ret_value = value;
	return 0;
}
