/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* record: what the kernel side sends through the ring buffer, and its counters. A stack's payload is sent once, before the first sample
 * that refers to it by its hash; the sample is small. Both have the process's tgid and generation, so two stacks with the same hash are
 * detected. */
#pragma once
#include "reason.h"
#include "runtime.h"
#include "types.h"

/* Of a deeper user stack, the leaf end and the root end are kept. */
#define SONDE_LEAF_FRAMES 1920
#define SONDE_ROOT_FRAMES 128 /* a power of two */
#define SONDE_MAX_USER_FRAMES (SONDE_LEAF_FRAMES + SONDE_ROOT_FRAMES)
#define SONDE_MAX_WALKED_FRAMES 16384 /* 20 ns each, in an interrupt: no more than that */
#define SONDE_MAX_KERNEL_FRAMES 127 /* kernel.perf_event_max_stack's default */
/* Leaf frames of a kernel stack taken at a tracepoint: the program itself; its caller, one of two functions, depending on whether the
 * kernel measures programs' run time; and that one's caller, but only if the tracepoint has other listeners. The stack's hash leaves them
 * out. */
#define SONDE_TRACEPOINT_FRAMES 3
#define SONDE_COMM_BYTES 16         /* TASK_COMM_LEN, including the NUL */

/* A frame of a user stack is a pc. The leaf's, and that of code interrupted by a signal, is the interrupted instruction. All others are
 * return addresses and carry this bit: the call is before them, so symbols are looked up at pc - 1. User pcs are below 2^57, so the bit is
 * free. Kernel stacks do not use it: there all frames but the leaf are return addresses. */
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
	SONDE_RECORD_EVENT = 12 /* abi/event.h */,
	SONDE_RECORD_HIT = 13 /* abi/probe.h */,
	SONDE_RECORD_RSS = 14 /* abi/rss.h */,
};

/* The state of one side (user or kernel) of a sample. */
enum sonde_stack_state {
	SONDE_STACK_NONE,   /* does not exist here, or was not requested */
	SONDE_STACK_STORED, /* the hash refers to its stack */
	SONDE_STACK_FULL,   /* missed: the stack store is full */
	SONDE_STACK_LOST,   /* missed: no room in the ring buffer for the payload, or it could not be read */
	SONDE_STACK_DEFERRED,    /* user side: the hash field is the id of a deferred record, which user space walks */
};

/* Identifies the stacks and labels of a thread at a moment: in samples, waits, wakers. */
struct sonde_stack_ids {
	__u64 user_stack, kernel_stack;     /* hashes; valid if the side is STORED */
	__u64 runtime_stack, labels;        /* likewise */
	__u8 user_state, kernel_state;        /* enum sonde_stack_state */
	__u8 runtime_state, labels_state;
	__u32 generation; /* of the process of the user side's stacks, as in struct sonde_process; 0: not known */
};

/* A member `ids`, or its members directly (-fms-extensions). */
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
	__u32 tgid;                         /* 0: a kernel stack, shared by all processes */
	__u64 time_ns;                      /* CLOCK_MONOTONIC: tells which mappings the pcs were walked with */
	__u64 hash;
	__u64 known_ns;                     /* of the struct sonde_process used for the walk; 0 for a kernel stack */
	__u32 nr_walked;                    /* if more than nr_frames: those between the two ends were left out, see sonde_frame_slot */
	__u32 generation;                   /* as in struct sonde_sample_record; 0 for a kernel stack */
	__u16 nr_frames;
	__u8 stop;                          /* enum sonde_stop */
	__u8 pad[5];                        /* zero */
}; /* __u64 frames[nr_frames] follow, leaf first */
_Static_assert(sizeof(struct sonde_stack_record) == 48, "layout changed: bump SONDE_ABI_VERSION");

/* The frames of a process's interpreters in a thread. */
struct sonde_runtime_record {
	__u32 type;                         /* SONDE_RECORD_RUNTIME */
	__u32 tgid;
	__u64 time_ns;                      /* CLOCK_MONOTONIC */
	__u64 hash;
	__u64 fault;                        /* the user address that could not be read; 0: none */
	__u16 nr_frames;
	__u8 stop;                          /* enum sonde_runtime_stop */
	__u8 stopped_runtime;               /* enum sonde_runtime: the one that `stop` is about */
	__u32 generation; /* of the process's struct sonde_process: after an exec the same addresses are other functions */
}; /* struct sonde_runtime_frame frames[nr_frames] follow, leaf first */
_Static_assert(sizeof(struct sonde_runtime_record) == 40, "layout changed: bump SONDE_ABI_VERSION");

/* The data that names a piece of code, copied while it runs: it may be freed before user space reads it (Python's exec() and eval()). Sent
 * before the payload of the first stack that contains the code. The runtime defines the pieces; one that could not be read has no bytes. */
#define SONDE_CODE_PIECES 5
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
	__u32 pad;
	__u8 bytes[SONDE_CODE_BYTES];
};
_Static_assert(sizeof(struct sonde_code_record) == 96 + SONDE_CODE_BYTES, "layout changed: bump SONDE_ABI_VERSION");

/* What the program itself says about a thread's current work: labels (Go's pprof labels), and a context. */
#define SONDE_MAX_LABELS 8
#define SONDE_LABEL_KEY_BYTES 32
#define SONDE_LABEL_TEXT_BYTES 64

struct sonde_label { /* not NUL-terminated; longer text is cut, its number of bytes is the full one */
	__u32 key_bytes, text_bytes;
	char key[SONDE_LABEL_KEY_BYTES];
	char text[SONDE_LABEL_TEXT_BYTES];
};
_Static_assert(sizeof(struct sonde_label) == 104, "layout changed: bump SONDE_ABI_VERSION");

/* The trace, span and attributes of a thread, as OpenTelemetry's SDKs publish them: OTEP 4947 "Thread Context", oteps/profiles in
 * opentelemetry-specification. There the attributes begin at byte 28, without `pad`. */
struct sonde_thread_context {
	__u8 trace_id[16], span_id[8];      /* both zero: no span is active */
	__u8 valid;                         /* 1; others: nothing in the record is valid, it may be in the middle of a change */
	__u8 flags;                         /* of the trace; zero here: they are no label */
	__u16 attributes_bytes;             /* as published; if more than SONDE_CONTEXT_ATTRIBUTES, none follow */
	__u32 pad;                          /* zero */
}; /* attributes follow: each the number of its key (u8), its text's number of bytes (u8), its text */
_Static_assert(sizeof(struct sonde_thread_context) == 32, "layout changed: bump SONDE_ABI_VERSION");
#define SONDE_CONTEXT_PUBLISHED 28 /* bytes before the attributes in the process's memory */
#define SONDE_CONTEXT_ATTRIBUTES 992 /* bytes; SDKs are to keep the whole below 640 */
#define SONDE_CONTEXT_BYTES (32 + SONDE_CONTEXT_ATTRIBUTES)

struct sonde_labels_record {
	__u32 type;                         /* SONDE_RECORD_LABELS */
	__u32 tgid;
	__u64 time_ns;                      /* CLOCK_MONOTONIC */
	__u64 hash;
	__u32 nr_labels;                    /* number of labels that follow */
	__u32 nr_left;                      /* labels without room, or that could not be read */
	__u64 fault;                        /* the user address of a text that could not be read; 0: none */
	__u32 generation;                   /* as in struct sonde_sample_record */
	__u32 context_bytes;                /* 0: no context; else at least a struct sonde_thread_context */
}; /* struct sonde_label labels[nr_labels], then the context */
_Static_assert(sizeof(struct sonde_labels_record) == 48, "layout changed: bump SONDE_ABI_VERSION");

/* Where the i-th frame of a walk is kept: the slots of the root end are used in turn. */
static inline __u32 sonde_frame_slot(__u32 i)
{
	return i < SONDE_LEAF_FRAMES ? i : SONDE_LEAF_FRAMES + (i & (SONDE_ROOT_FRAMES - 1)); /* LEAF_FRAMES is a multiple of ROOT_FRAMES */
}

/* Key of a hash in the map `stacks`: each window of the recording gets all payloads that its samples refer to. */
static inline __u64 sonde_sent_key(__u64 hash, __u64 window)
{
	return hash ^ window * 0x9e3779b97f4a7c15ULL; /* odd multiplier: no two windows have the same keys */
}

/* Values of the map `stacks`. */
#define SONDE_STACK_SENDING 0 /* its payload is being sent, and may find no room */
#define SONDE_STACK_SENT 1    /* its payload was sent */
#define SONDE_STACK_SETTLED 2 /* it was sent as a deferred stack, and user space got no farther than the kernel */

/* Registers by DWARF number, then the pc. */
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
/* Below the stack pointer, usable by the function: psABI 3.2.2. In an epilogue rules refer to it. */
#define SONDE_RED_ZONE_BYTES 128

enum sonde_deferred_use {
	/* the kernel could not walk this stack to its end, user space may: the sample has `id` */
	SONDE_DEFERRED_WALK,
	/* the kernel could, and user space checks it: `id` is the hash of what the kernel found */
	SONDE_DEFERRED_AUDIT,
	/* made in user space from a SONDE_RECORD_INITIAL_STACK: other memory of the process may be read */
	SONDE_DEFERRED_INITIAL,
};

/* A thread's user registers and the top of its stack at a sample. */
struct sonde_deferred_record {
	__u32 type;                         /* SONDE_RECORD_DEFERRED */
	__u32 tgid;
	__u64 time_ns;                      /* CLOCK_MONOTONIC */
	__u64 id;
	__u64 hash;                         /* of the stack as far as the kernel walked it */
	__u64 hash_begin;                   /* start value of that hash */
	__u64 regs[SONDE_NR_REGS];
	__u64 absent[SONDE_DEFERRED_MAX_PAGES / 64]; /* a bit for each page, from stack_start on: it was not in memory, and is zero here */
	/* User address of the first byte; normally the red zone below the stack pointer is included. */
	__u64 stack_start;
	__u32 stack_bytes;                  /* at most SONDE_DEFERRED_MAX_BYTES */
	__u8 use;                           /* enum sonde_deferred_use */
	__u8 compat;                        /* 32-bit code */
	__u8 stop;                          /* enum sonde_stop of the walk in the kernel */
	__u8 in_syscall;                    /* pc is behind a system call instruction, or at a fault */
	__u8 is_cut;                        /* the stack may continue behind what was copied */
	__u8 pad[7];                        /* zero */
}; /* stack_bytes of user memory follow */
_Static_assert(sizeof(struct sonde_deferred_record) == 64 + 8 * (SONDE_NR_REGS + SONDE_DEFERRED_MAX_PAGES / 64),
	       "layout changed: bump SONDE_ABI_VERSION");

/* Does the record contain these bytes of the stack? `off`: from its first byte. */
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
	__u64 ticks;                        /* times the program ran */
	__u64 recorded;
	__u64 filtered[SONDE_FILTER_COUNT];
	__u64 dropped[SONDE_DROP_COUNT];
	__u64 deferred;                         /* deferred records sent */
	__u64 deferred_refused;                 /* and not sent, for lack of room or by the rate limit */
	__u64 deferred_cut;		    /* of those sent: shorter than their stacks, for the same reasons */
	__u64 runtimes_missed;              /* samples without their interpreters' frames, as that program was not loaded */
	/* Interpreters' frames whose code was in the cache (runtimes/runtime.h); of these: read again, and found to be other code. */
	__u64 runtime_cache_hits, runtime_cache_checks, runtime_cache_wrong;
};
