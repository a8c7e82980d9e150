/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Deferred stacks: a thread's registers and a copy of its stack, for user space to walk. The copy is made directly in the ring buffer. Its
 * length is one of a few powers of two, because a reservation there has to be a constant. A page that is not in memory sets a bit. */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../abi/record.h"
#include "../compat/kernel.h"
#include "maps.h"
#include "../walk/unwind.h"

#define DEFERRED_UNKNOWN_PAGES 16
#define DEFERRED_LENGTHS 7
static const __u32 deferred_max_pages; /* 0: SONDE_DEFERRED_MAX_PAGES */
#define DEFERRED_ROOT_BYTES (2 * WALK_PAGE_BYTES) /* for arguments at the root, or a thread's control block */

_Static_assert(SONDE_DEFERRED_MIN_PAGES == 4 && SONDE_DEFERRED_MAX_PAGES == SONDE_DEFERRED_MIN_PAGES << (DEFERRED_LENGTHS - 1) &&
		   WALK_PAGE_BYTES == SONDE_DEFERRED_PAGE_BYTES,
	       "send_copy has other ones");

/* Number of stack pages from `start` on; 0: unknown. A process's first stack ends at its arguments; C libraries keep a thread's control
 * block at the end of its stack. */
static __always_inline __u32 deferred_pages(__u64 start)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 first = BPF_CORE_READ(task, mm, start_stack) - start, thread = user_tls_base(0) - start,
	      bytes = first < thread ? first : thread;

	bytes += DEFERRED_ROOT_BYTES;
	return bytes <= 16ull * SONDE_DEFERRED_MAX_PAGES * WALK_PAGE_BYTES ? bytes / WALK_PAGE_BYTES : 0;
}

/* The shortest length with at least nr_pages pages, or the longest allowed here. */
static __always_inline __u32 deferred_length(__u32 nr_pages)
{
	__u32 length = SONDE_DEFERRED_MIN_PAGES;

#pragma clang loop unroll(full)
	for (int i = 0; i < DEFERRED_LENGTHS - 1; i++)
		length <<= length < nr_pages && length < (deferred_max_pages ?: SONDE_DEFERRED_MAX_PAGES);
	return length;
}

static __always_inline int send_pages(const struct sonde_deferred_record *header, const __u32 nr_pages, __u64 flags)
{
	struct sonde_deferred_record *deferred = bpf_ringbuf_reserve(&ring, sizeof(*deferred) + nr_pages * WALK_PAGE_BYTES, 0);
	__u64 from = header->stack_start, off = 0, absent = 0;

	if (!deferred)
		return -1;
	__builtin_memcpy(deferred, header, sizeof(*deferred));
	deferred->stack_bytes = nr_pages * WALK_PAGE_BYTES;
#pragma clang loop unroll(full)
	for (__u32 word = 0; word < (nr_pages + 63) / 64; word++) {
#pragma clang loop unroll(disable)
		for (__u32 page = 0; page < (nr_pages < 64 ? nr_pages : 64);
		     page++) { /* few instructions: the verifier follows every turn */
			/* the sign bit of an error */
			absent = absent >> 1 |
				 ((__u64)bpf_probe_read_user((__u8 *)(deferred + 1) + off, WALK_PAGE_BYTES, (const void *)(from + off)) &
				  1ull << 63);
			off += WALK_PAGE_BYTES;
			barrier_var(off); /* it stays a number that the verifier knows */
		}
		deferred->absent[word] = nr_pages < 64 ? absent >> (64 - nr_pages) : absent;
		absent = 0;
	}
	bpf_ringbuf_submit(deferred, flags);
	return 0;
}

/* Sends the header and nr_pages pages of stack; nr_pages is a result of deferred_length. Returns 0; not 0: there is no room. */
static __always_inline int send_copy(const struct sonde_deferred_record *header, __u32 nr_pages, __u64 flags)
{
	switch (nr_pages) {
	case 4: return send_pages(header, 4, flags);
	case 8: return send_pages(header, 8, flags);
	case 16: return send_pages(header, 16, flags);
	case 32: return deferred_max_pages && deferred_max_pages < 32 ? -1 : send_pages(header, 32, flags);
	case 64: return deferred_max_pages && deferred_max_pages < 64 ? -1 : send_pages(header, 64, flags);
	case 128: return deferred_max_pages && deferred_max_pages < 128 ? -1 : send_pages(header, 128, flags);
	case 256: return deferred_max_pages && deferred_max_pages < 256 ? -1 : send_pages(header, 256, flags);
	}
	return -1;
}
