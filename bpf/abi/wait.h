/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs of the scheduler's events (bpf/sched.bpf.c, bpf/waking.bpf.c) keep of the time that threads are not on a CPU: sums per
 * thread and stack, in the kernel. */
#pragma once
#include "record.h"
#include "types.h"

/* The thread's state when it left the CPU, as enum bits of include/linux/sched.h (TASK_REPORT and what stands above), and beside them: */
#define SONDE_WAIT_PREEMPTED 0 /* it was still runnable: no bit at all */
#define SONDE_NO_SYSCALL 0xffffu /* it was not in one: a page fault, a kernel thread, or 32-bit code */

/* What kind of time a sum is of. */
enum sonde_wait_what {
	SONDE_WAIT_OFF, /* from the moment that the thread left the CPU up to its being on one again; its stack is the one that it left with
			 */
	SONDE_WAIT_RUNNING, /* the thread's time on CPUs, for `wall`: no stacks */
};

/* Equal waits but for their times. Zeroed before it is filled: it is a key of a hash map. */
struct sonde_wait_key {
	SONDE_STACK_IDS;
	__u64 waker; /* hash of a SONDE_RECORD_WAKER; 0: not asked for, or nobody woke it (preempted, still waiting at the end) */
	__u32 tgid, tid;
	__u16 syscall;                       /* its number, or SONDE_NO_SYSCALL */
	__u16 state;
	__u8 what;                           /* enum sonde_wait_what */
	__u8 window;                         /* of a sum: the low byte of the number of the recording's window that it belongs to */
	__u8 pad[2];                         /* zero */
	char comm[SONDE_COMM_BYTES];         /* of the thread, when it left the CPU */
};
_Static_assert(sizeof(struct sonde_wait_key) == 80, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_wait_sum {
	__u64 nr_waits;                      /* that ended in this window */
	__u64 off_ns;                        /* in this window: blocked, and then runnable on a CPU's queue. RUNNING: on a CPU */
	__u64 queued_ns;                     /* of it: runnable */
	__u64 whole_ns;                      /* of the waits that ended, each from its begin on, which may lie in an earlier window */
	__u64 min_ns;                        /* of one of them; 0: none ended */
	__u64 max_ns;                        /* of one of them, or of one that goes on, up to here */
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

/* What a thread has in a window that ends, and in no sum yet: from the iterator, at a border between two windows and at the end. */
struct sonde_wait_piece {
	struct sonde_wait_key key;
	struct sonde_wait_sum sum;
	__u64 goes_on;                       /* 1: the wait goes on in the next window, which will name these stacks, too */
	__u64 waker;                         /* and who ends it, when that is known: it is woken, and on a CPU's queue; 0: not yet */
};
_Static_assert(sizeof(struct sonde_wait_piece) == 144, "layout changed: bump SONDE_ABI_VERSION");

/* With --hist: how many waits of a sum were so long. */
struct sonde_wait_slot {
	struct sonde_wait_key key;
	__u64 slot;                          /* floor(log2(off_ns / 1000)), 0 for less than 2 us, as histogram_slot has it */
};

/* Who ended a wait: sent once for each hash. */
struct sonde_waker_record {
	__u32 type;                          /* SONDE_RECORD_WAKER */
	__u32 pad;                           /* zero */
	__u64 hash;
	__u64 time_ns;                       /* CLOCK_MONOTONIC */
	struct sonde_wait_key waker; /* the thread that woke it up, with its stacks there; tgid and tid 0: an interrupt did (then there is
					the kernel's stack alone) */
};
_Static_assert(sizeof(struct sonde_waker_record) == 104, "layout changed: bump SONDE_ABI_VERSION");

/* A thread that was not on a CPU when the recording began: what user space needs to walk its user stack. */
struct sonde_initial_stack_record {
	__u32 type;                          /* SONDE_RECORD_INITIAL_STACK */
	__u32 tgid, tid;
	__u32 pad;                           /* zero */
	__u64 time_ns;                       /* CLOCK_MONOTONIC */
	__u64 id; /* stands as user_stack in the key of its first wait, whose user_side is SONDE_STACK_DEFERRED, as with raw records */
	__u64 regs[SONDE_NR_REGS];           /* by DWARF number; callee-saved ones as well: the entry code saves all of them */
	__u8 compat;                         /* 32-bit code */
	__u8 in_syscall;
	__u8 tail_pad[6];                    /* zero */
};
_Static_assert(sizeof(struct sonde_initial_stack_record) == 40 + 8 * SONDE_NR_REGS, "layout changed: bump SONDE_ABI_VERSION");

/* With --events: each switch and each wake-up, as it happens. */
struct sonde_switch_record {
	__u32 type;                          /* SONDE_RECORD_SWITCH */
	__u32 cpu;
	__u64 time_ns;                       /* CLOCK_MONOTONIC */
	struct sonde_wait_key prev;          /* who left the CPU, in which state, with which stacks */
	__u32 next_tgid, next_tid;
	char next_comm[SONDE_COMM_BYTES];
};
_Static_assert(sizeof(struct sonde_switch_record) == 120, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_wakeup_record {
	__u32 type;                          /* SONDE_RECORD_WAKEUP */
	__u32 cpu;                           /* of the waker */
	__u64 time_ns;                       /* CLOCK_MONOTONIC */
	__u32 tgid, tid;                     /* who is woken up */
	__u64 waker;                         /* hash of a SONDE_RECORD_WAKER */
};
_Static_assert(sizeof(struct sonde_wakeup_record) == 32, "layout changed: bump SONDE_ABI_VERSION");

/* Two per CPU in the map `wait_counters`: of the events, and of the iterators. */
#define SONDE_WAIT_COUNTERS 2
struct sonde_wait_counters {
	__u64 switches;                      /* that the program saw */
	__u64 waits;                         /* that were added to a sum */
	__u64 new_sums, new_slots;           /* that were made; user space takes them away while the programs go on */
	__u64 filtered_target;               /* waits of another process, thread, name or cgroup than asked for, or in another state */
	__u64 filtered_time;                 /* shorter than --min or longer than --max */
	__u64 unseen;                        /* switches to a thread whose switch away was not seen: nothing is known of its wait */
	__u64 no_storage;                    /* no memory for what is to be remembered of a thread */
	__u64 sums_full;                     /* waits that found no room in the map of sums */
	__u64 lost_ns;                       /* off_ns of those waits */
	__u64 slots_full;                    /* likewise, in the map of histograms */
	__u64 stack_cache_hits, stack_cache_checks, stack_cache_wrong; /* stacks that were known to be the same; of them those walked all
									  the same, and those that then were not the same */
	__u64 events_lost;                   /* switch and wake-up records that found no room in the ring */
};
