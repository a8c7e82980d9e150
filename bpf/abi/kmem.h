/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* kmem: what bpf/heap/kmem.bpf.c keeps of the kernel's memory that was allocated and is not free yet, and what it counts. */
#pragma once
#include "record.h"
#include "types.h"

struct sonde_kmem_config {
	__u64 min_bytes, max_bytes;          /* only allocations of these sizes; max 0: no limit */
	__u32 sample_rate;                   /* one in so many, by chance; 0 and 1: all */
	__u32 page_shift;
	__u32 own_tgid;                      /* sonde's process, which is left out with its helpers; as in the root PID namespace */
	__u32 pad;                           /* zero */
};
_Static_assert(sizeof(struct sonde_kmem_config) == 32, "layout changed: bump SONDE_ABI_VERSION");

/* By its address, or that of its struct page. */
struct sonde_kmem_block {
	__u64 bytes;                         /* as the kernel rounded them up */
	__u64 time_ns;                       /* CLOCK_MONOTONIC */
	__u64 kernel_stack;                  /* as in struct sonde_stack_ids */
	__u8 kernel_state;                   /* enum sonde_stack_state */
	__u8 pad[3];                         /* zero */
	__u32 weight;                        /* it stands for so many */
};
_Static_assert(sizeof(struct sonde_kmem_block) == 32, "layout changed: bump SONDE_ABI_VERSION");

/* One per CPU. */
#define SONDE_KMEM_COUNTER_LIST(X) \
	X(allocs)        /* blocks and pages */ \
	X(frees)         /* of known ones */ \
	X(frees_unknown) /* allocated before the start, or left out */ \
	X(own)           /* allocations of sonde's: left out */ \
	X(left_out)      /* by size or sampling */ \
	X(reused)        /* addresses that came again: a free was not seen */ \
	X(full)          /* found no room in the map */ \
	X(lost)          /* the map was in use on the CPU */ \
	X(no_scratch)    /* without a stack: too many programs at a time on the CPU */

struct sonde_kmem_counters {
#define X(field) __u64 field;
	SONDE_KMEM_COUNTER_LIST(X)
#undef X
};
