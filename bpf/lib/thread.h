/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the scheduler's programs remember of each thread, from one switch to the next. It is allocated when a thread starts, or by the
 * iterator over all threads at the start, never at a switch: there the queue's lock is held, and an allocation that wakes a thread would
 * wait for that lock for ever. Threads that the filters exclude for good have none. */
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
#include "map.h"

enum thread_is {
	THREAD_UNKNOWN,  /* no switch of it was seen yet */
	THREAD_ON,       /* on a CPU */
	THREAD_OFF,      /* on none */
	THREAD_LEFT_OUT, /* on none, and the filters exclude it */
	THREAD_GONE,     /* it has ended */
	THREAD_INITIAL,   /* as OFF, but no switch of it was seen yet: its wait is described in `initial_stack` */
};

/* The wait of a thread that was off the CPU at the start. Only the iterator writes it, before it makes the thread SEEDED; until then nobody
 * reads it. */
struct initial_wait {
	struct sonde_wait_key key;
	__u64 run_delay, exec_ns;
};

struct thread {
	__u64 since_ns;              /* since when the thread `is` in its state; UNKNOWN: 0, or when the command began */
	__u64 run_delay;             /* when it left the CPU */
	__u64 exec_ns;               /* at the same time: its time on CPUs since it started */
	__u64 counted_ns;            /* until when its time in the present state is in a sum, or in one of the next two fields */
	__u64 running_ns;            /* with `wall`: time on CPUs that is not in a sum yet */
	__u64 running_window;        /* the window of running_ns */
	__u64 off_ns;                /* ON: of the last wait, not added to its sum yet */
	__u64 whole_ns;              /* ON: the same, but the whole wait; 0: there is none */
	__u64 cut_queued_ns;         /* of the wait: its time on a queue that an earlier window has */
	__u64 waker;                 /* hash; kept over the switch: the waker may be faster than the thread's switch away */
	__u32 is;                    /* enum thread_is */
	__u32 nr_short;              /* consecutive waits shorter than the minimum */
	struct sonde_wait_key key;   /* of the wait */
	struct initial_wait initial_stack;
	struct cache cache;          /* of its stacks at switches */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads MAP("sonde_threads");

struct { /* with `wake` or `events`: of the thread's stacks when it wakes others up */
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct cache);
} waker_caches MAP("sonde_wake_memo");

static __always_inline struct thread *thread_of(struct task_struct *task)
{
	return bpf_task_storage_get(&threads, task, 0, 0);
}

/* The state of the thread that leaves the CPU. */
static __always_inline __u16 switch_state(const __u64 *ctx)
{
	if (ctx[0] & 0xff)
		return SONDE_WAIT_PREEMPTED;
	if (cfg.has_prev_state)
		return ctx[3] & ~TASK_FREEZABLE;
	return task_state((void *)ctx[1]);
}

/* How long the thread was on CPUs' queues, ready to run, since it started: by the scheduler's own account, which adds a wait when the
 * thread gets its CPU, just behind the event. */
static __always_inline __u64 run_delay(struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.run_delay) ? task->sched_info.run_delay : 0;
}

static __always_inline __u16 syscall_of(__u64 syscall, bool compat)
{
	return !compat && syscall < SONDE_NO_SYSCALL ? syscall : SONDE_NO_SYSCALL;
}

/* Finds the current thread's system call. regs: NULL: they have to be copied. False: the thread has no user side. */
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

/* Sends the runtimes' stack and puts the ids of all stacks into the key. */
static __always_inline void take_ids(struct sonde_wait_key *key, struct scratch *s)
{
	struct sonde_counters *count = s->runtimes_left ? zeroth(&counters) : 0;

	if (count)
		count_one(&count->runtimes_missed);
	send_runtime(s);
	key->ids = s->sample.ids;
}

/* True if an event of a thread that has storage is to be sent. Threads have storage whatever their name and cgroup are, as these may
 * change. */
static __always_inline bool is_event_of(struct task_struct *task)
{
	__u64 comm[SONDE_COMM_BYTES / 8];

	if (!cfg.filter_comm && !cfg.filter_cgroup)
		return true;
	read_comm(task, comm);
	return is_wanted_now(task, comm);
}
