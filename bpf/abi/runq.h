/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* runq: what bpf/runq.bpf.c counts: how long threads wait for a CPU, how long they stay on it, how many wait. */
#pragma once
#include "record.h"
#include "types.h"

#define SONDE_RUNQ_SLOTS 64 /* same as HISTOGRAM_SLOTS */
#define SONDE_RUNQ_MAX_KEYS 16384

enum sonde_runq_key_kind { SONDE_RUNQ_KEY_NONE, SONDE_RUNQ_KEY_TGID, SONDE_RUNQ_KEY_TID, SONDE_RUNQ_KEY_CGROUP, SONDE_RUNQ_KEY_COMM };

struct sonde_runq_config {
	__u64 slower_ns;                     /* waits longer than this are sent; SONDE_RUNQ_NONE_SLOWER: none */
	__u32 unit_ns;                       /* of the slots: 1000 or 1000000 */
	__u8 histogram;                      /* 0: count nothing, for --slower alone */
	__u8 key;                            /* enum sonde_runq_key_kind: one histogram per key */
	__u8 stacks;                         /* send with each wait the stacks of the thread that left the CPU (bpf/runqslower.bpf.c) */
	__u8 pad[1];                         /* zero */
};
#define SONDE_RUNQ_NONE_SLOWER (~0ULL)

struct sonde_runq_key {
	union {
		__u64 id;                    /* of the process, thread or cgroup; the other half is zero */
		char comm[SONDE_COMM_BYTES];
	};
};
_Static_assert(sizeof(struct sonde_runq_key) == 16, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_runq_histogram {
	__u64 slots[SONDE_RUNQ_SLOTS];       /* as of HISTOGRAM_LOG2; of queue lengths HISTOGRAM_LINEAR */
	__u64 sum;                           /* of the values: ns, or threads */
	char comm[SONDE_COMM_BYTES];         /* of the process or thread, when it was first seen */
};

/* The histograms of queue lengths. */
enum sonde_runq_length { SONDE_RUNQ_LENGTH_ALL, SONDE_RUNQ_LENGTH_FAIR, SONDE_RUNQ_LENGTH_COUNT };

struct sonde_runq_thread {
	__u32 tgid, tid;
	__u32 policy;                        /* SCHED_* */
	__s32 nice;
	__u32 rt_priority;
	__u32 pad;                           /* zero */
	char comm[SONDE_COMM_BYTES];
};

/* A wait longer than the requested limit. */
struct sonde_runq_record {
	__u64 time_ns;                       /* CLOCK_MONOTONIC: when it ended */
	__u64 wait_ns;
	__u32 cpu;
	__u32 pad;                           /* zero */
	struct sonde_runq_thread next, prev; /* the thread that waited, and the one that left the CPU for it */
};

/* struct sonde_runq_record with the stacks of `prev`, in the ring that has their payloads. */
struct sonde_runqslower_record {
	__u32 type;                          /* SONDE_RECORD_RUNQSLOWER */
	__u32 pad;                           /* zero */
	struct sonde_runq_record wait;
	SONDE_STACK_IDS;                     /* without labels */
};

/* One per CPU. */
struct sonde_runq_counters {
	__u64 events;                        /* switches or ticks that the program saw */
	__u64 filtered;                      /* of threads that were not requested */
	__u64 counted;
	__u64 no_time;                       /* waits whose start is not known */
	/* Waits that were under way at the start, or whose start no program has seen: taken from the scheduler's own accounting on their
	 * last CPU. */
	__u64 by_account;
	__u64 keys_full;                     /* values without room for a new key */
	__u64 sent, lost;                    /* records sent, and records without room in the ring */
};
