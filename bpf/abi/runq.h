/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What bpf/runq.bpf.c counts: how long threads wait for a CPU, how long they stay on it, how many wait. */
#pragma once
#include "record.h"
#include "types.h"

#define SONDE_RUNQ_SLOTS 64 /* as HISTOGRAM_SLOTS */
#define SONDE_RUNQ_MAX_KEYS 16384

enum sonde_runq_key_kind { SONDE_RUNQ_KEY_NONE, SONDE_RUNQ_KEY_TGID, SONDE_RUNQ_KEY_TID, SONDE_RUNQ_KEY_CGROUP, SONDE_RUNQ_KEY_COMM };

struct sonde_runq_config {
	__u64 slower_ns;                     /* waits longer than this are sent; SONDE_RUNQ_NONE_SLOWER: none */
	__u32 unit_ns;                       /* of the slots: 1000 or 1000000 */
	__u8 histogram;                      /* 0: nothing is counted, for --slower alone */
	__u8 key;                            /* enum sonde_runq_key_kind: a histogram for each */
	__u8 stacks;                         /* those of who left the CPU go with each wait that is sent (bpf/runqslower.bpf.c) */
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
	__u64 slots[SONDE_RUNQ_SLOTS];       /* as of an HISTOGRAM_LOG2; of queue lengths HISTOGRAM_LINEAR */
	__u64 sum;                           /* of the values: ns, or threads */
	char comm[SONDE_COMM_BYTES];         /* of the process or thread whose it is, when it was first met */
};

/* Which histograms there are of queue lengths. */
enum sonde_runq_length { SONDE_RUNQ_LENGTH_ALL, SONDE_RUNQ_LENGTH_FAIR, SONDE_RUNQ_LENGTH_COUNT };

struct sonde_runq_thread {
	__u32 tgid, tid;
	__u32 policy;                        /* SCHED_* */
	__s32 nice;
	__u32 rt_priority;
	__u32 pad;                           /* zero */
	char comm[SONDE_COMM_BYTES];
};

/* A wait that was longer than asked for. */
struct sonde_runq_record {
	__u64 time_ns;                       /* CLOCK_MONOTONIC: when it ended */
	__u64 wait_ns;
	__u32 cpu;
	__u32 pad;                           /* zero */
	struct sonde_runq_thread next, prev; /* who waited, and who left the CPU for it */
};

/* The same with the stacks of `prev`, in the ring where their bodies are. */
struct sonde_runqslower_record {
	__u32 type;                          /* SONDE_RECORD_RUNQSLOWER */
	__u32 pad;                           /* zero */
	struct sonde_runq_record wait;
	SONDE_STACK_IDS;                     /* without labels */
};

/* One per CPU. */
struct sonde_runq_counters {
	__u64 events;                        /* switches or ticks that the program saw */
	__u64 filtered;                      /* of threads that were not asked for */
	__u64 counted;
	__u64 no_time;                       /* waits whose begin nobody knows */
	__u64 by_account; /* waits that were under way at the start, or of whose begin no program was told: by the scheduler's account, on
			     their last CPU */
	__u64 keys_full;                     /* values that found no room under a key */
	__u64 sent, lost;                    /* records, and those that found no room in the ring */
};
