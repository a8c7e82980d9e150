/* SPDX-License-Identifier: Apache-2.0 */
/* order: compares two numbers. */
#pragma once
#include <stdint.h>

/* For qsort(3): less than, equal to or greater than 0. */
static inline int order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}
