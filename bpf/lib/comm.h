/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of threads, where the verifier knows the type of a task: read without a helper call, which takes as long as the rest of a
 * filter. */
#pragma once
#include <linux/bpf.h>

#include "../abi/types.h"
#include "../compat/kernel.h"

#define EACH_BYTE(value) ((value) * 0x0101010101010101ULL)

/* The lowest bit set belongs to the first byte that is zero; 0: no byte is. Little-endian. */
static __always_inline __u64 zero_bytes(__u64 word)
{
	return (word - EACH_BYTE(1ULL)) & ~word & EACH_BYTE(0x80ULL);
}

/* The bytes before the first zero byte. */
static __always_inline __u64 up_to_zero(__u64 word)
{
	__u64 zeros = zero_bytes(word);

	return word & ((zeros & -zeros) - 1);
}

/* Reads the thread's name, padded with zeros. (Up to Linux 5.16 the kernel may leave other bytes behind the name.) */
static __always_inline void read_comm(struct task_struct *task, __u64 *ret_words)
{
	const __u64 *words = (const void *)task->comm;
	__u64 first = words[0];

	ret_words[0] = up_to_zero(first);
	ret_words[1] = zero_bytes(first) ? 0 : up_to_zero(words[1]);
}
