/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a process, made of any bytes: the same over and over, with nothing in the first page, so most pointers in them lead to
 * something. */
#pragma once
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

struct memory {
	const uint8_t *bytes;
	size_t size;
};

static inline int read_memory(void *arg, uint64_t from, void *to, size_t size)
{
	const struct memory *memory = arg;

	if (from < 4096 || !memory->size)
		return -EFAULT;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = memory->bytes[(from + i) % memory->size];
	return 0;
}
