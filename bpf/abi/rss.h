/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rss: what bpf/heap/rss.bpf.c counts and sends: one record each time a process has more resident memory of a kind than ever before, by a
 * mebibyte or more. */
#pragma once
#include "record.h"
#include "types.h"

/* The kernel's four counters (MM_FILEPAGES and the following, linux/mm_types_task.h, in this order), and a part of the second. */
enum sonde_rss { SONDE_RSS_FILE, SONDE_RSS_ANON, SONDE_RSS_SWAP, SONDE_RSS_SHMEM, SONDE_RSS_HUGE, SONDE_RSS_COUNT };
#define SONDE_RSS_MEMBERS SONDE_RSS_HUGE /* the kernel's; HUGE: anonymous memory that came as a huge page */

struct sonde_rss_config {
	__u32 page_shift;
	__u32 grain_pages;                   /* in a mebibyte */
	__u32 huge_pages;                    /* in a huge page */
	__u32 own_tgid;                      /* sonde's process, which is left out; as in the root PID namespace */
};
_Static_assert(sizeof(struct sonde_rss_config) == 16, "layout changed: bump SONDE_ABI_VERSION");

/* One per CPU. */
#define SONDE_RSS_COUNTER_LIST(X) \
	X(hits)       /* changes of a counter */ \
	X(foreign)    /* by another process or the kernel: a fork, an exec, reclaim; only swap is followed there */ \
	X(growths)    /* new mebibytes */ \
	X(recorded)   /* records sent */ \
	X(filtered)   /* of processes that were not asked for */ \
	X(no_storage) /* changes in processes for which the kernel had no memory */ \
	X(no_scratch) /* mebibytes lost: too many programs at a time on the CPU */ \
	X(ring_full)  /* mebibytes lost: no room in the ring buffer */

struct sonde_rss_counters {
#define X(field) __u64 field;
	SONDE_RSS_COUNTER_LIST(X)
#undef X
};

struct sonde_rss_record {
	__u32 type;                          /* SONDE_RECORD_RSS */
	__u32 kind;                          /* enum sonde_rss */
	__u64 bytes;                         /* beyond the process's peak before */
	struct sonde_sample_record sample;   /* its type is SONDE_RECORD_SAMPLE; without stacks where another process swapped it out */
};
_Static_assert(sizeof(struct sonde_rss_record) == 96, "layout changed: bump SONDE_ABI_VERSION");
