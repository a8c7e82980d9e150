/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* alloc_chance: Poisson sampling of allocations by their bytes: points lie on the bytes at random, one in `mean_bytes`. A block is taken
 * when one lies in it. Its chance p is 1 - exp(-bytes / mean_bytes), and it stands for 1 / p blocks of its size. The weight is made
 * from the very number that the choice was made with, so the sums are right in the mean however exact the exponential is. */
#pragma once
#include "types.h"

#define SONDE_ALLOC_MAX_SAMPLE_BYTES (128u << 20) /* products fit in 64 bits */
#define SONDE_ALLOC_CERTAIN (1ULL << 32)

/* exp(-x), both with 32 bits behind the point; 2^-27 <= x < 23. By the series for x / 32, squared five times; its sixth term is too small.
 * Without branches, which the verifier would follow both ways. */
static inline __u64 sonde_exp_minus(__u64 x)
{
	__u64 y = x >> 5, y2 = y * y >> 32, y3 = y2 * y >> 32, y4 = y3 * y >> 32, y5 = y4 * y >> 32;
	__u64 result = (1ULL << 32) - y + y2 / 2 - y3 / 6 + y4 / 24 - y5 / 120;

	result = result * result >> 32;
	result = result * result >> 32;
	result = result * result >> 32;
	result = result * result >> 32;
	return result * result >> 32;
}

/* The chance of a block, of SONDE_ALLOC_CERTAIN. A block of no bytes has that of one byte. */
static inline __u64 sonde_alloc_chance(__u64 bytes, __u64 mean_bytes)
{
	__u64 chance;

	if (!bytes)
		bytes = 1;
	if (bytes / 23 >= mean_bytes)
		return SONDE_ALLOC_CERTAIN;
	chance = SONDE_ALLOC_CERTAIN - sonde_exp_minus((bytes << 32) / mean_bytes);
	return chance ? chance : 1;
}

/* How many blocks one that was taken stands for: 1 / chance, rounded up or down by chance (32 random bits), so that the mean is exact. */
static inline __u32 sonde_alloc_weight(__u64 chance, __u32 random)
{
	__u64 weight = SONDE_ALLOC_CERTAIN / chance, rest = SONDE_ALLOC_CERTAIN % chance;

	return weight + ((__u64)random * chance >> 32 < rest);
}
