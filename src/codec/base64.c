// SPDX-License-Identifier: Apache-2.0
#include "codec/base64.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

int base64_read(const char *text, void *bytes, size_t room, size_t *ret_size)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t *to = bytes;
	uint32_t bits = 0, nr_bits = 0;
	size_t size = 0;

	for (; *text && *text != '='; text++) {
		const char *digit = strchr(alphabet, *text);

		if (!digit)
			return -EBADMSG;
		bits = bits << 6 | (uint32_t)(digit - alphabet);
		nr_bits += 6;
		if (nr_bits < 8)
			continue;
		if (size == room)
			return -ENOSPC;
		nr_bits -= 8;
		to[size++] = (uint8_t)(bits >> nr_bits);
	}
	if (text[strspn(text, "=")] || nr_bits == 6)
		return -EBADMSG;
	*ret_size = size;
	return 0;
}
