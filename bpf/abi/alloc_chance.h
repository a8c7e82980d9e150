/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* alloc_chance: Poisson sampling of allocations by their bytes: points lie on the bytes at random, one in `mean_bytes`. A block is taken
 * when one lies in it. Its chance p is 1 - exp(-bytes / mean_bytes), and it stands for 1 / p blocks of its size. The weight is made
 * from the very number that the choice was made with, so the sums are right in the mean however exact the exponential is. */
#pragma once
#include "types.h"

#define SONDE_ALLOC_MAX_SAMPLE_BYTES (128u << 20) /* products fit in 64 bits */
#define SONDE_ALLOC_CERTAIN (1ULL << 32)

/* exp(-2^(bit - 32)) in 32 bits behind the point, if that bit is set. */
static inline __u64 sonde_decay(__u64 rest, __u64 x, __u32 bit, __u64 factor)
{
	return x >> bit & 1 ? rest * factor >> 32 : rest;
}

/* exp(-x), both with 32 bits behind the point; 0 < x < 23. The last 24 bits of x by the series, of which the third term is too small. */
static inline __u64 sonde_exp_minus(__u64 x)
{
	__u64 low = x & 0xffffff, rest = 1ULL << 32;

	rest = sonde_decay(rest, x, 24, 4278222805);
	rest = sonde_decay(rest, x, 25, 4261543595);
	rest = sonde_decay(rest, x, 26, 4228380000);
	rest = sonde_decay(rest, x, 27, 4162825044);
	rest = sonde_decay(rest, x, 28, 4034748382);
	rest = sonde_decay(rest, x, 29, 3790295335);
	rest = sonde_decay(rest, x, 30, 3344923893);
	rest = sonde_decay(rest, x, 31, 2605029347);
	rest = sonde_decay(rest, x, 32, 1580030169);
	rest = sonde_decay(rest, x, 33, 581260615);
	rest = sonde_decay(rest, x, 34, 78665070);
	rest = sonde_decay(rest, x, 35, 1440801);
	rest = sonde_decay(rest, x, 36, 483);
	return low ? rest * ((1ULL << 32) - low + (low * low >> 33)) >> 32 : rest;
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
