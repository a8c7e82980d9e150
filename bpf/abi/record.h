/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel side sends through the ring buffer, and its counters. A stack's body is sent once, before the first sample
 * that names it by its hash; the sample is small. */
#pragma once
#include "reason.h"
#include "types.h"

#define SONDE_MAX_USER_FRAMES 2048
#define SONDE_MAX_KERNEL_FRAMES 127 /* kernel.perf_event_max_stack's default */
#define SONDE_COMM_BYTES 16         /* TASK_COMM_LEN, with its NUL */

/* A frame of a user stack is a pc. The leaf's, and that of code interrupted by a signal, is the interrupted instruction; all
 * others are return addresses and carry this bit: the call stands before them, so symbols are looked up at pc - 1. User pcs
 * are below 2^57, so the bit is free. Kernel stacks do not use it: there all but the leaf are return addresses. */
#define SONDE_FRAME_RETURN (1ULL << 63)

enum sonde_record_type { SONDE_RECORD_SAMPLE = 1, SONDE_RECORD_STACK = 2 };

/* What became of one side (user or kernel) of a sample. */
enum sonde_side {
	SONDE_SIDE_NONE,   /* does not exist here, or was not asked for */
	SONDE_SIDE_STORED, /* the hash names its stack */
	SONDE_SIDE_FULL,   /* missed: the stack store is full */
	SONDE_SIDE_LOST,   /* missed: no room in the ring buffer for the body, or it could not be read */
};

struct sonde_sample_record {
	__u32 type;                         /* SONDE_RECORD_SAMPLE */
	__u32 cpu;
	__u64 time_ns;                      /* CLOCK_MONOTONIC */
	__u64 user_stack, kernel_stack;     /* hashes; they name a stack when the side is STORED */
	__u32 tgid, tid;                    /* as seen from the root PID namespace */
	__u8 user_side, kernel_side;        /* enum sonde_side */
	__u8 pad[6];                        /* zero */
	char comm[SONDE_COMM_BYTES];        /* of the thread */
};
_Static_assert(sizeof(struct sonde_sample_record) == 64, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_stack_record {
	__u32 type;                         /* SONDE_RECORD_STACK */
	__u32 tgid;                         /* 0: a kernel stack, the same for all processes */
	__u64 time_ns;                      /* CLOCK_MONOTONIC: which mappings the pcs were walked with */
	__u64 hash;
	__u16 nr_frames;
	__u8 stop;                          /* enum sonde_stop */
	__u8 pad[5];                        /* zero */
}; /* __u64 frames[nr_frames] follow, leaf first */
_Static_assert(sizeof(struct sonde_stack_record) == 32, "layout changed: bump SONDE_ABI_VERSION");

/* One per CPU in the map `counters`. */
struct sonde_counters {
	__u64 ticks;                        /* times that the program ran */
	__u64 recorded;
	__u64 filtered[SONDE_FILTER_COUNT];
	__u64 dropped[SONDE_DROP_COUNT];
};
