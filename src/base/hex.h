/* SPDX-License-Identifier: Apache-2.0 */
/* hex: ids and other bytes as hexadecimal digits. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Either case; -1: none. */
static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Writes 2 * `size` lower-case digits, without a NUL. */
static inline void hex_write(const uint8_t *bytes, size_t size, char *to)
{
	for (size_t i = 0; i < size; i++) {
		to[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		to[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
}

/* True: the text is 2 * `size` digits, and nothing else; *bytes is filled. */
static inline bool hex_read(const char *text, uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		int high = hex_digit(text[2 * i]), low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);

		if (low < 0)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	return !text[2 * size];
}
