/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* wait: what the programs for scheduler events (bpf/sched.bpf.c, bpf/waking.bpf.c) keep of the time that threads are not on a CPU: sums per
 * thread and stack, in the kernel. */
#pragma once
#include "record.h"
#include "types.h"

/* The thread's state when it left the CPU, as enum bits of include/linux/sched.h (TASK_REPORT and those above), and in addition: */
#define SONDE_WAIT_PREEMPTED 0 /* still runnable: no bit at all */
#define SONDE_NO_SYSCALL 0xffffu /* not in a system call: a page fault, a kernel thread, or 32-bit code */

/* The kind of time in a sum. */
enum sonde_wait_what {
	/* from leaving the CPU to running again; the stack is the one it left with */
	SONDE_WAIT_OFF,
	SONDE_WAIT_RUNNING, /* the thread's time on CPUs, for `wall`: no stacks */
};

/* Key of a sum: waits that differ only in their times. Zero it before filling it: it is a key of a hash map. */
struct sonde_wait_key {
	SONDE_STACK_IDS;
	/* Hash of a SONDE_RECORD_WAKER. 0: not requested, or nobody woke the thread (preempted, still waiting at the end). */
	__u64 waker;
	__u32 tgid, tid;
	__u16 syscall;                       /* its number, or SONDE_NO_SYSCALL */
	__u16 state;
	__u8 what;                           /* enum sonde_wait_what */
	__u8 window;                         /* of a sum: the low byte of the number of the recording's window */
	__u8 pad[2];                         /* zero */
	char comm[SONDE_COMM_BYTES];         /* of the thread, when it left the CPU */
};
_Static_assert(sizeof(struct sonde_wait_key) == 80, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_wait_sum {
	__u64 nr_waits;                      /* number of waits that ended in this window */
	__u64 off_ns;                        /* in this window: blocked, then runnable on a CPU's queue. RUNNING: on a CPU */
	__u64 queued_ns;                     /* the runnable part of off_ns */
	__u64 whole_ns;                      /* of the waits that ended, each from its start, which may be in an earlier window */
	__u64 min_ns;                        /* shortest of them; 0: none ended */
	__u64 max_ns;                        /* longest of them, or of a wait that continues, up to here */
};
_Static_assert(sizeof(struct sonde_wait_sum) == 48, "layout changed: bump SONDE_ABI_VERSION");

static inline void sonde_wait_sum_add(struct sonde_wait_sum *sum, const struct sonde_wait_sum *more)
{
	if (!sum->min_ns || (more->min_ns && more->min_ns < sum->min_ns))
		sum->min_ns = more->min_ns;
	if (more->max_ns > sum->max_ns)
		sum->max_ns = more->max_ns;
	sum->nr_waits += more->nr_waits;
	sum->off_ns += more->off_ns;
	sum->queued_ns += more->queued_ns;
	sum->whole_ns += more->whole_ns;
}

/* What a thread has in a window that ends, not in a sum yet. From the iterator, at a border between two windows and at the end. */
struct sonde_wait_piece {
	struct sonde_wait_key key;
	struct sonde_wait_sum sum;
	__u64 goes_on;                       /* 1: the wait continues in the next window, which will refer to these stacks too */
	__u64 waker;                         /* who ends the wait, if known: the thread was woken and is on a CPU's queue; 0: not yet */
};
_Static_assert(sizeof(struct sonde_wait_piece) == 144, "layout changed: bump SONDE_ABI_VERSION");

/* With --hist: how many waits of a sum had this length. */
struct sonde_wait_slot {
	struct sonde_wait_key key;
	__u64 slot;                          /* floor(log2(off_ns / 1000)), 0 for less than 2 us, as histogram_slot has it */
};

/* Who ended a wait: sent once per hash. */
struct sonde_waker_record {
	__u32 type;                          /* SONDE_RECORD_WAKER */
	__u32 pad;                           /* zero */
	__u64 hash;
	__u64 time_ns;                       /* CLOCK_MONOTONIC */
	/* The thread that woke it up, with its stacks at that moment. tgid and tid 0: an interrupt did, and there is only a kernel
	 * stack. */
	struct sonde_wait_key waker;
};
_Static_assert(sizeof(struct sonde_waker_record) == 104, "layout changed: bump SONDE_ABI_VERSION");

/* A thread that was off CPU when the recording began: what user space needs to walk its user stack. */
struct sonde_initial_stack_record {
	__u32 type;                          /* SONDE_RECORD_INITIAL_STACK */
	__u32 tgid, tid;
	__u32 pad;                           /* zero */
	__u64 time_ns;                       /* CLOCK_MONOTONIC */
	/* The user_stack in the key of its first wait, whose user_state is SONDE_STACK_DEFERRED, as with deferred records. */
	__u64 id;
	__u64 regs[SONDE_NR_REGS];           /* by DWARF number; including callee-saved ones: the entry code saves them all */
	__u8 compat;                         /* 32-bit code */
	__u8 in_syscall;
	__u8 tail_pad[6];                    /* zero */
};
_Static_assert(sizeof(struct sonde_initial_stack_record) == 40 + 8 * SONDE_NR_REGS, "layout changed: bump SONDE_ABI_VERSION");

/* With --events: each switch and each wake-up when it happens. */
struct sonde_switch_record {
	__u32 type;                          /* SONDE_RECORD_SWITCH */
	__u32 cpu;
	__u64 time_ns;                       /* CLOCK_MONOTONIC */
	struct sonde_wait_key prev;          /* the thread that left the CPU, its state and stacks */
	__u32 next_tgid, next_tid;
	char next_comm[SONDE_COMM_BYTES];
};
_Static_assert(sizeof(struct sonde_switch_record) == 120, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_wakeup_record {
	__u32 type;                          /* SONDE_RECORD_WAKEUP */
	__u32 cpu;                           /* of the waker */
	__u64 time_ns;                       /* CLOCK_MONOTONIC */
	__u32 tgid, tid;                     /* the thread that is woken up */
	__u64 waker;                         /* hash of a SONDE_RECORD_WAKER */
};
_Static_assert(sizeof(struct sonde_wakeup_record) == 32, "layout changed: bump SONDE_ABI_VERSION");

/* Two per CPU in the map `wait_counters`: for the events and for the iterators. */
#define SONDE_WAIT_COUNTERS 2
struct sonde_wait_counters {
	__u64 switches;                      /* seen by the program */
	__u64 waits;                         /* added to a sum */
	__u64 new_sums, new_slots;           /* created; user space removes them while the programs run */
	__u64 filtered_target;               /* waits of another process, thread, name or cgroup than requested, or in another state */
	__u64 filtered_time;                 /* shorter than --min or longer than --max */
	__u64 unseen;                        /* switches to a thread whose switch away was not seen: its wait is not known */
	__u64 no_storage;                    /* no memory to store data about a thread */
	__u64 sums_full;                     /* waits without room in the map of sums */
	__u64 lost_ns;                       /* off_ns of those waits */
	__u64 slots_full;                    /* likewise, in the map of histograms */
	/* Stacks found in the stack cache; those of them that were walked all the same, as a check; those where the check differed. */
	__u64 stack_cache_hits, stack_cache_checks, stack_cache_wrong;
	__u64 events_lost;                   /* switch and wake-up records without room in the ring */
};
