/* SPDX-License-Identifier: Apache-2.0 */
/* words: numbers at any place of bytes that were read from a process. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t u16_at(const uint8_t *bytes, size_t off)
{
	uint16_t value;

	memcpy(&value, bytes + off, sizeof(value));
	return value;
}

static inline uint32_t u32_at(const uint8_t *bytes, size_t off)
{
	uint32_t value;

	memcpy(&value, bytes + off, sizeof(value));
	return value;
}

static inline uint64_t u64_at(const uint8_t *bytes, size_t off)
{
	uint64_t value;

	memcpy(&value, bytes + off, sizeof(value));
	return value;
}
