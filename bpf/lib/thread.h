/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the scheduler's programs remember of each thread, from one switch to the next. It is made when a thread is born, or by the iterator
 * that goes through all of them at the start, never at a switch: there the queue's lock is held, and an allocation that wakes somebody
 * would wait for it for ever. Threads that are left out for good have none. */
#pragma once
#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../abi/wait.h"
#include "../compat/kernel.h"
#include "comm.h"
#include "event_regs.h"
#include "filter.h"
#include "knobs.h"
#include "user_stack_cache.h"
#include "scratch.h"
#include "send.h"
#include "task_state.h"

enum thread_is {
	THREAD_UNKNOWN,  /* no switch of it was seen yet */
	THREAD_ON,       /* on a CPU */
	THREAD_OFF,      /* on none */
	THREAD_LEFT_OUT, /* likewise, and the filters say no */
	THREAD_GONE,     /* it has ended */
	THREAD_SEEDED,   /* as OFF, but no switch of it was seen yet: what is known of its wait stands in `seed` */
};

/* What was found of a thread that was not on a CPU at the start. Written by the iterator alone, before it makes the thread SEEDED: until
 * then nobody looks at it. */
struct seeded {
	struct sonde_wait_key key;
	__u64 run_delay, exec_ns;
};

struct thread {
	__u64 since_ns;              /* that it `is` so; UNKNOWN: 0, or when the command began */
	__u64 run_delay;             /* when it left the CPU */
	__u64 exec_ns;               /* likewise: its time on CPUs in all of its life */
	__u64 counted_ns;            /* up to when its time as it `is` now stands in a sum, or in one of the next two */
	__u64 running_ns;            /* with `wall`: on CPUs, not in a sum yet */
	__u64 running_window;        /* the window that that was in */
	__u64 off_ns;                /* when ON: of the wait before, which is to be added to its sum */
	__u64 whole_ns;              /* likewise, from its begin on; 0: there is none */
	__u64 cut_queued_ns;         /* of the wait: its part on a queue that an earlier window has */
	__u64 waker;                 /* hash; it outlives the switch: who wakes a thread may be faster than its switch away */
	__u32 is;                    /* enum thread_is */
	__u32 nr_short;              /* waits one after the other that were shorter than the minimum */
	struct sonde_wait_key key;   /* of the wait */
	struct seeded initial_stack;
	struct cache cache;          /* of its stacks at switches */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct { /* with `wake`: of its stacks where it wakes others up */
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct cache);
} waker_caches SEC(".maps");

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	return bpf_task_storage_get(&threads, task, 0, 0);
}

/* The state of a thread that is leaving the CPU. */
static __always_inline __u16 switch_state(const __u64 *ctx)
{
	if (ctx[0] & 0xff)
		return SONDE_WAIT_PREEMPTED;
	if (cfg.has_prev_state)
		return ctx[3] & ~TASK_FREEZABLE;
	return task_state((void *)ctx[1]);
}

/* How long it was on CPUs' queues in all of its life, ready to run: by the scheduler's own account, which adds the time of a wait when the
 * thread gets its CPU, just behind the event. */
static __always_inline __u64 run_delay(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.run_delay) ? task->sched_info.run_delay : 0;
}

static __always_inline __u16 syscall_of(__u64 syscall, bool compat)
{
	return !compat && syscall < SONDE_NO_SYSCALL ? syscall : SONDE_NO_SYSCALL;
}

/* Which system call the current thread is in. regs: NULL: they have to be copied. False: it has no user side. */
static __always_inline bool take_syscall(const user_regs_t *regs, struct scratch *s)
{
	s->syscall = NO_SYSCALL;
	s->compat = 0;
	if (regs) {
		s->syscall = known_syscall(regs);
		s->compat = !is_64_bit(regs);
		return true;
	}
	if (!take_regs(s->walk.number))
		return false;
	s->syscall = s->walk.syscall;
	s->compat = s->walk.compat;
	return true;
}

/* What was found of the stacks becomes a part of a key. */
static __always_inline void take_ids(struct sonde_wait_key *key, struct scratch *s)
{
	__u32 zero = 0;
	struct sonde_counters *count = s->runtimes_left ? bpf_map_lookup_elem(&counters, &zero) : 0;

	if (count)
		count_one(&count->runtimes_missed);
	send_runtime(s);
	key->ids = s->sample.ids;
}

/* Is what happens to a thread that has storage to be told of? It has that whatever its name and cgroup are, as these may change. */
static __always_inline bool is_event_of(struct task_struct *task)
{
	__u64 comm[SONDE_COMM_BYTES / 8];

	if (!cfg.filter_comm && !cfg.filter_cgroup)
		return true;
	read_comm(task, comm);
	return is_wanted_now(task, comm);
}
