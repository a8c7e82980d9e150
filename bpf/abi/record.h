/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel side sends through the ring buffer, and its counters. A stack's body is sent once, before the first sample
 * that names it by its hash; the sample is small. Both say whose the stack is, by tgid and generation: a hash that two have is seen. */
#pragma once
#include "reason.h"
#include "runtime.h"
#include "types.h"

/* Of a deeper user stack the leaf end and the root end are kept. */
#define SONDE_LEAF_FRAMES 1920
#define SONDE_ROOT_FRAMES 128 /* a power of two */
#define SONDE_MAX_USER_FRAMES (SONDE_LEAF_FRAMES + SONDE_ROOT_FRAMES)
#define SONDE_MAX_WALKED_FRAMES 16384 /* 20 ns each, in an interrupt: then it is enough */
#define SONDE_MAX_KERNEL_FRAMES 127 /* kernel.perf_event_max_stack's default */
/* The leaf frames of a kernel stack that is taken at a tracepoint: the program itself, who calls it, which is done at two places, by
 * whether anybody has the kernel take programs' time, and who calls that, but only while others listen, too. The stack's hash leaves them
 * out. */
#define SONDE_TRACEPOINT_FRAMES 3
#define SONDE_COMM_BYTES 16         /* TASK_COMM_LEN, with its NUL */

/* A frame of a user stack is a pc. The leaf's, and that of code interrupted by a signal, is the interrupted instruction; all
 * others are return addresses and carry this bit: the call stands before them, so symbols are looked up at pc - 1. User pcs
 * are below 2^57, so the bit is free. Kernel stacks do not use it: there all but the leaf are return addresses. */
#define SONDE_FRAME_RETURN (1ULL << 63)

enum sonde_record_type {
	SONDE_RECORD_SAMPLE = 1,
	SONDE_RECORD_STACK = 2,
	SONDE_RECORD_DEFERRED = 3,
	SONDE_RECORD_RUNTIME = 4,
	SONDE_RECORD_LABELS = 5,
	SONDE_RECORD_WAKER = 6,
	SONDE_RECORD_INITIAL_STACK = 7,
	SONDE_RECORD_SWITCH = 8,
	SONDE_RECORD_WAKEUP = 9 /* abi/wait.h */,
	SONDE_RECORD_RUNQSLOWER = 10 /* abi/runq.h */,
	SONDE_RECORD_CODE = 11,
	SONDE_RECORD_EVENT = 12 /* abi/event.h */
};

/* What became of one side (user or kernel) of a sample. */
enum sonde_stack_state {
	SONDE_STACK_NONE,   /* does not exist here, or was not asked for */
	SONDE_STACK_STORED, /* the hash names its stack */
	SONDE_STACK_FULL,   /* missed: the stack store is full */
	SONDE_STACK_LOST,   /* missed: no room in the ring buffer for the body, or it could not be read */
	SONDE_STACK_DEFERRED,    /* user side: what stands for the hash is the id of a raw record, which user space walks */
};

/* What names the stacks and labels of a thread at a moment: in samples, waits, wakers. */
struct sonde_stack_ids {
	__u64 user_stack, kernel_stack;     /* hashes; they name a stack when the side is STORED */
	__u64 runtime_stack, labels;        /* likewise */
	__u8 user_state, kernel_state;        /* enum sonde_stack_state */
	__u8 runtime_state, labels_state;
	__u32 generation; /* of the process that the user side's stacks are of, as struct sonde_process has it; 0: it was not known */
};

/* By that name, or its members by theirs (-fms-extensions). */
#define SONDE_STACK_IDS \
	union { \
		struct sonde_stack_ids ids; \
		struct sonde_stack_ids; \
	}

struct sonde_sample_record {
	__u32 type;                         /* SONDE_RECORD_SAMPLE */
	__u32 cpu;
	__u64 time_ns;                      /* CLOCK_MONOTONIC */
	SONDE_STACK_IDS;
	__u32 tgid, tid;                    /* as seen from the root PID namespace */
	char comm[SONDE_COMM_BYTES];        /* of the thread */
};
_Static_assert(sizeof(struct sonde_sample_record) == 80, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_stack_record {
	__u32 type;                         /* SONDE_RECORD_STACK */
	__u32 tgid;                         /* 0: a kernel stack, the same for all processes */
	__u64 time_ns;                      /* CLOCK_MONOTONIC: which mappings the pcs were walked with */
	__u64 hash;
	__u64 known_ns;                     /* of the struct sonde_process that it was walked with; 0 for the kernel's */
	__u32 nr_walked;                    /* more than nr_frames: those between the two ends were left out, see sonde_frame_slot */
	__u32 generation;                   /* as in struct sonde_sample_record; 0 for the kernel's */
	__u16 nr_frames;
	__u8 stop;                          /* enum sonde_stop */
	__u8 pad[5];                        /* zero */
}; /* __u64 frames[nr_frames] follow, leaf first */
_Static_assert(sizeof(struct sonde_stack_record) == 48, "layout changed: bump SONDE_ABI_VERSION");

/* What the interpreters of a process run in a thread. */
struct sonde_runtime_record {
	__u32 type;                         /* SONDE_RECORD_RUNTIME */
	__u32 tgid;
	__u64 time_ns;                      /* CLOCK_MONOTONIC */
	__u64 hash;
	__u64 fault;                        /* the user address that could not be read; 0: none */
	__u16 nr_frames;
	__u8 stop;                          /* enum sonde_runtime_stop */
	__u8 stopped_runtime;               /* enum sonde_runtime: of which `stop` tells */
	__u32 generation; /* that of the process's struct sonde_process: after an exec the same addresses are other functions */
}; /* struct sonde_runtime_frame frames[nr_frames] follow, leaf first */
_Static_assert(sizeof(struct sonde_runtime_record) == 40, "layout changed: bump SONDE_ABI_VERSION");

/* What code is named by, copied while it ran: when user space comes to look, it may be gone (Python's exec() and eval()). Before the body
 * of the first stack that has it. Which pieces there are is the runtime's own; one that could not be read has no bytes. */
#define SONDE_CODE_PIECES 4
#define SONDE_CODE_BYTES 1088

struct sonde_code_record {
	__u32 type;                         /* SONDE_RECORD_CODE */
	__u32 tgid;
	__u64 time_ns;                      /* CLOCK_MONOTONIC */
	__u64 code;                         /* as in struct sonde_runtime_frame */
	__u32 cookie;
	__u32 generation;                   /* as in struct sonde_runtime_record */
	__u64 from[SONDE_CODE_PIECES];      /* user addresses */
	__u16 sizes[SONDE_CODE_PIECES];     /* in bytes */
	__u16 offs[SONDE_CODE_PIECES];      /* where in `bytes` */
	__u8 bytes[SONDE_CODE_BYTES];
};
_Static_assert(sizeof(struct sonde_code_record) == 80 + SONDE_CODE_BYTES, "layout changed: bump SONDE_ABI_VERSION");

/* What the program itself says of what a thread works at: Go's pprof labels. */
#define SONDE_MAX_LABELS 8
#define SONDE_LABEL_KEY_BYTES 32
#define SONDE_LABEL_TEXT_BYTES 64

struct sonde_label { /* not NUL-terminated; what is longer is cut, and its number of bytes is the whole one */
	__u32 key_bytes, text_bytes;
	char key[SONDE_LABEL_KEY_BYTES];
	char text[SONDE_LABEL_TEXT_BYTES];
};
_Static_assert(sizeof(struct sonde_label) == 104, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_labels_record {
	__u32 type;                         /* SONDE_RECORD_LABELS */
	__u32 tgid;
	__u64 time_ns;                      /* CLOCK_MONOTONIC */
	__u64 hash;
	__u32 nr_labels;                    /* that follow */
	__u32 nr_left;                      /* that found no room, or could not be read */
	__u64 fault;                        /* the user address of a text that could not be read; 0: none */
	__u32 generation;                   /* as in struct sonde_sample_record */
	__u32 pad;                          /* zero */
}; /* struct sonde_label labels[nr_labels] */
_Static_assert(sizeof(struct sonde_labels_record) == 48, "layout changed: bump SONDE_ABI_VERSION");

/* Where the i-th frame of a walk is kept: the places of the root end are used in turn. */
static inline __u32 sonde_frame_slot(__u32 i)
{
	return i < SONDE_LEAF_FRAMES ? i : SONDE_LEAF_FRAMES + (i & (SONDE_ROOT_FRAMES - 1)); /* LEAF_FRAMES is a multiple of ROOT_FRAMES */
}

/* Under which key the map `stacks` has a hash: each window of the recording is sent all bodies that its samples name. */
static inline __u64 sonde_sent_key(__u64 hash, __u64 window)
{
	return hash ^ window * 0x9e3779b97f4a7c15ULL; /* odd: no two windows have the same keys */
}

/* What it says of it. */
#define SONDE_STACK_SENDING 0 /* its body is on its way, and may find no room */
#define SONDE_STACK_SENT 1    /* its body was sent */
#define SONDE_STACK_SETTLED 2 /* it was sent raw, and user space found no more to it than the kernel had */

/* Registers by DWARF number, and the pc behind them. */
#ifdef SONDE_ARM64
#define SONDE_NR_REGS 33 /* "DWARF for the Arm 64-bit Architecture" section 4.1 */
#define SONDE_REG_PC 32
#else
#define SONDE_NR_REGS 17 /* psABI figure 3.36 */
#define SONDE_REG_PC 16
#endif
#define SONDE_DEFERRED_PAGE_BYTES 4096
#define SONDE_DEFERRED_MAX_PAGES 256
#define SONDE_DEFERRED_MIN_PAGES 4
#define SONDE_DEFERRED_MAX_BYTES (SONDE_DEFERRED_MAX_PAGES * SONDE_DEFERRED_PAGE_BYTES)
#define SONDE_RED_ZONE_BYTES 128 /* below the stack pointer, a function's own: psABI 3.2.2. In an epilogue rules name places there */

enum sonde_deferred_use {
	SONDE_DEFERRED_WALK,	/* the kernel could not walk this stack to its end, user space may: `id` stands in the sample */
	SONDE_DEFERRED_AUDIT,	/* it could, and user space is to check it: `id` is the hash of what it found */
	SONDE_DEFERRED_INITIAL, /* made in user space, of a SONDE_RECORD_INITIAL_STACK: what is not in it may be read in the process's
				   memory */
};

/* A thread's user registers and the top of its stack as they were at a sample. */
struct sonde_deferred_record {
	__u32 type;                         /* SONDE_RECORD_DEFERRED */
	__u32 tgid;
	__u64 time_ns;                      /* CLOCK_MONOTONIC */
	__u64 id;
	__u64 hash;                         /* of the stack as far as the kernel came */
	__u64 hash_begin;                   /* what that began with */
	__u64 regs[SONDE_NR_REGS];
	__u64 absent[SONDE_DEFERRED_MAX_PAGES / 64]; /* a bit for each page, from stack_start on: it was not in memory, and is zero here */
	__u64 stack_start; /* user address of the first byte; normally the red zone below the stack pointer is there, too */
	__u32 stack_bytes;                  /* SONDE_DEFERRED_MAX_BYTES at most */
	__u8 use;                           /* enum sonde_deferred_use */
	__u8 compat;                        /* 32-bit code */
	__u8 stop;                          /* enum sonde_stop of the walk in the kernel */
	__u8 in_syscall;                    /* pc is behind a system call's instruction, or where a fault struck */
	__u8 is_cut;                        /* the stack may go on behind what was copied */
	__u8 pad[7];                        /* zero */
}; /* stack_bytes of user memory follow */
_Static_assert(sizeof(struct sonde_deferred_record) == 64 + 8 * (SONDE_NR_REGS + SONDE_DEFERRED_MAX_PAGES / 64),
	       "layout changed: bump SONDE_ABI_VERSION");

/* Are these bytes of the stack, `off` from its begin, in the record? */
static inline int sonde_deferred_has(const struct sonde_deferred_record *deferred, __u64 off, __u64 size)
{
	__u64 page = off / SONDE_DEFERRED_PAGE_BYTES;

	if (off >= deferred->stack_bytes || size > deferred->stack_bytes - off)
		return 0;
	for (; page * SONDE_DEFERRED_PAGE_BYTES < off + size && page < SONDE_DEFERRED_MAX_PAGES; page++) {
		if (deferred->absent[page / 64] >> page % 64 & 1)
			return 0;
	}
	return 1;
}

/* One per CPU in the map `counters`. */
struct sonde_counters {
	__u64 ticks;                        /* times that the program ran */
	__u64 recorded;
	__u64 filtered[SONDE_FILTER_COUNT];
	__u64 dropped[SONDE_DROP_COUNT];
	__u64 deferred;                         /* raw records that were sent to be walked */
	__u64 deferred_refused;                 /* and those that were not, for want of room or by the limit of so many in a while */
	__u64 deferred_cut;		    /* of those that were sent, those that are shorter than their stacks, for the same reasons */
	__u64 runtimes_missed;              /* samples without what their interpreters ran, as the program for that was not loaded */
};
