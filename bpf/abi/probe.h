/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe: what bpf/probe.bpf.c counts or sends at a trigger: hits by fields, times from entry to return, single hits with their arguments.
 */
#pragma once
#include "event.h"
#include "record.h"
#include "types.h"

#define SONDE_PROBE_ARGS       12 /* as many as a tracepoint has at most */
#define SONDE_PROBE_REGISTERS  6  /* that have arguments of a function */
#define SONDE_PROBE_STEPS      4  /* pointers from an argument to a value: a.b.c.d */
#define SONDE_PROBE_FILTERS    8
#define SONDE_PROBE_PRINTED    8
#define SONDE_PROBE_TEXT_BYTES 64
#define SONDE_PROBE_KEY_BYTES  128 /* of an argument in a key */
#define SONDE_PROBE_SLOTS      64 /* same as HISTOGRAM_SLOTS */
#define SONDE_PROBE_NO_CALL    (~0u)
#define SONDE_PROBE_DEPTH      16 /* a thread's calls of a function that have not returned */

/* Where the arguments are. */
enum sonde_probe_context {
	SONDE_PROBE_WORDS,	/* the context is an array of them */
	SONDE_PROBE_REGS,	/* the context is the registers at a function's begin or end */
	SONDE_PROBE_USDT,	/* the same; the probe's note says where they are */
	SONDE_PROBE_CALL_BEGIN, /* the first word is the address of the registers of a system call, the second its number */
	SONDE_PROBE_CALL_END,	/* the same, the second is its result */
};

enum sonde_probe_source {
	SONDE_PROBE_ARG,
	SONDE_PROBE_RESULT,
	SONDE_PROBE_TGID,
	SONDE_PROBE_TID,
	SONDE_PROBE_CPU,
	SONDE_PROBE_COMM,
};

enum sonde_probe_text {
	SONDE_PROBE_NUMBER,
	SONDE_PROBE_USER_TEXT,	 /* the value is the address of a text in the program's memory */
	SONDE_PROBE_KERNEL_TEXT, /* in the kernel's */
	SONDE_PROBE_TEXT_HERE,	 /* an array of characters, in the kernel's memory, where the last step leads */
};

struct sonde_probe_field {
	__u8 source; /* enum sonde_probe_source */
	__u8 arg;    /* number of the argument */
	__u8 bytes;  /* of the number: 1, 2, 4 or 8 */
	__u8 is_signed;
	__u8 text;			  /* enum sonde_probe_text */
	__u8 nr_steps;			  /* from the argument, an address, to the value */
	__u8 pad[2];			  /* zero */
	__u32 offsets[SONDE_PROBE_STEPS]; /* of each step, from the address so far */
};
_Static_assert(sizeof(struct sonde_probe_field) == 24, "layout changed: bump SONDE_ABI_VERSION");

enum sonde_probe_operator {
	SONDE_PROBE_EQUAL,
	SONDE_PROBE_DIFFERENT,
	SONDE_PROBE_LESS,
	SONDE_PROBE_LESS_OR_EQUAL,
	SONDE_PROBE_MORE,
	SONDE_PROBE_MORE_OR_EQUAL,
	SONDE_PROBE_BEGINS,
};

struct sonde_probe_filter {
	struct sonde_probe_field field;
	__u64 number;
	__u32 operator;	  /* enum sonde_probe_operator */
	__u32 text_bytes; /* to compare: with the NUL, without it for SONDE_PROBE_BEGINS */
	char text[SONDE_PROBE_TEXT_BYTES];
};

/* Does the number pass the comparison? */
static inline int sonde_probe_is_ordered(const struct sonde_probe_filter *filter, __u64 value)
{
	int less = filter->field.is_signed ? (__s64)value < (__s64)filter->number : value < filter->number;

	switch (filter->operator) {
	case SONDE_PROBE_EQUAL:
		return value == filter->number;
	case SONDE_PROBE_DIFFERENT:
		return value != filter->number;
	case SONDE_PROBE_LESS:
		return less;
	case SONDE_PROBE_LESS_OR_EQUAL:
		return less || value == filter->number;
	case SONDE_PROBE_MORE:
		return !less && value != filter->number;
	default:
		return !less;
	}
}

struct sonde_probe_config {
	__u32 context; /* enum sonde_probe_context */
	__u32 call, compat_call; /* only this system call, by its numbers of 64-bit and 32-bit code; SONDE_PROBE_NO_CALL: it has none */
	__u32 nr_args; /* SONDE_PROBE_WORDS: words of the context that may be read */
	__u32 result;  /* SONDE_PROBE_WORDS: the word that is the function's result, from 1 on; 0: there is none */
	__u8 by_tgid, by_tid, by_cpu, by_comm, by_arg;
	__u8 begins, ends; /* the two halves of a time; neither: hits are counted */
	__u8 prints;	   /* send each hit */
	__u8 examined;	   /* bpf/event.bpf.c looks at the hit before it takes stacks */
	__u8 pad[3];	   /* zero */
	__u32 nr_filters, nr_printed;
	struct sonde_probe_field key; /* with by_arg */
	struct sonde_probe_filter filters[SONDE_PROBE_FILTERS];
	struct sonde_probe_field printed[SONDE_PROBE_PRINTED];
};

/* The key of a sum; what is not asked for is zero. */
struct sonde_probe_key {
	__u32 tgid, tid, cpu;
	__u32 unread; /* 1: the argument could not be read, and is zero here */
	char comm[SONDE_COMM_BYTES];
	union {
		__u64 number;
		char text[SONDE_PROBE_KEY_BYTES];
	} arg;
};
_Static_assert(sizeof(struct sonde_probe_key) == 160, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_probe_sum {
	__u64 count;
	__u64 sum_ns;			/* with times */
	__u64 slots[SONDE_PROBE_SLOTS]; /* of HISTOGRAM_LOG2, in microseconds */
	char comm[SONDE_COMM_BYTES];	/* of the thread, when it was first seen */
};

struct sonde_probe_values { /* by sonde_probe_config.printed */
	__u32 unread; /* a bit for each that could not be read: its memory is not there, or not in memory */
	__u32 absent; /* a bit for each argument that this USDT probe does not have */
	__u64 numbers[SONDE_PROBE_PRINTED];
	char texts[SONDE_PROBE_PRINTED][SONDE_PROBE_TEXT_BYTES];
};

struct sonde_probe_record {
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u32 tgid, tid, cpu;
	__u32 probe; /* the caller's number of it */
	char comm[SONDE_COMM_BYTES];
	struct sonde_probe_values values;
};

/* A hit with its stacks, if sonde_probe_config.nr_printed: bpf/event.bpf.c. Its type is SONDE_RECORD_HIT. */
struct sonde_probe_stacks_record {
	struct sonde_event_record event;
	struct sonde_probe_values values;
};

/* One per CPU. hits = own + filtered + rejected + unread + counted + keys_full + unpaired, and what is sent or lost is counted as well */
struct sonde_probe_counters {
	__u64 hits;
	__u64 own;	/* in sonde's own process */
	__u64 filtered; /* of threads that were not asked for */
	__u64 rejected; /* by the filters */
	__u64 unread;	/* not counted, as what a filter compares could not be read */
	__u64 counted, keys_full;
	__u64 unpaired;	  /* begins, and ends whose begin was not seen */
	__u64 sent, lost; /* lost: no room in the ring buffer */
};
