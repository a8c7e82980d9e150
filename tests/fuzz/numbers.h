/* SPDX-License-Identifier: Apache-2.0 */
/* numbers: addresses that a fuzz target looks up. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The first and the last address, and each hexadecimal number in the lines with its successor. */
static inline void ask_numbers(const char *bytes, size_t size, void (*ask)(const void *table, uint64_t address), const void *table)
{
	ask(table, 0);
	ask(table, UINT64_MAX);
	for (size_t i = 0; i + 16 <= size && i < 65536; i += 3) {
		char text[17] = { 0 };
		uint64_t address;

		memcpy(text, bytes + i, 16);
		address = strtoull(text, NULL, 16);
		ask(table, address);
		ask(table, address + 1);
	}
}
