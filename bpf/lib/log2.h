/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Slots of histograms by powers of two, as in model/histogram.h: 0 for [0, 2), i for [2^i, 2^(i + 1)). */
#pragma once
#include <linux/types.h>

/* Six steps without branches, which the verifier would have to follow both ways. */
static __always_inline __u32 log2_slot(__u64 value)
{
	__u32 bits = 0, step;

	step = (value > 0xffffffff) << 5;
	value >>= step;
	bits |= step;
	step = (value > 0xffff) << 4;
	value >>= step;
	bits |= step;
	step = (value > 0xff) << 3;
	value >>= step;
	bits |= step;
	step = (value > 0xf) << 2;
	value >>= step;
	bits |= step;
	step = (value > 0x3) << 1;
	value >>= step;
	bits |= step;
	return bits + (value > 1);
}
