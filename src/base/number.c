// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"

#include <errno.h>
#include <string.h>

#include "base/hex.h"

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

bool number_of_field(const char *line, const char *key, uint64_t *ret_value)
{
	size_t size = strlen(key);

	return !strncmp(line, key, size) && !strncmp(line + size, ":\t", 2) && !number_u64(line + size + 2, UINT64_MAX, ret_value);
}

#define MAX_DECIMAL UINT64_C(1000000000000000)

int number_decimal(const char *text, double *ret_value)
{
	char whole[20];
	size_t nr_whole = strcspn(text, "."), nr_fraction = text[nr_whole] ? strlen(text + nr_whole + 1) : 0;
	uint64_t value, fraction = 0;
	double scale = 1;
	int err;

	if (nr_fraction > 9 || (text[nr_whole] && !nr_fraction))
		return -EINVAL;
	if (nr_whole >= sizeof(whole))
		return strspn(text, "0123456789") == nr_whole ? -ERANGE : -EINVAL;
	memcpy(whole, text, nr_whole);
	whole[nr_whole] = '\0';
	err = number_u64(whole, MAX_DECIMAL, &value);
	if (!err && nr_fraction)
		err = number_u64(text + nr_whole + 1, UINT64_MAX, &fraction);
	for (size_t i = 0; i < nr_fraction; i++)
		scale *= 10;
	if (!err)
		*ret_value = (double)value + (double)fraction / scale;
	return err;
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
