/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hits: calls of allocators in short windows (alloc_cfg.windows), each in a list for user space, with what the probes cost its thread so
 * far. docs/internals/memory.md */
#pragma once
#include "heap/calls.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader: with alloc_cfg.windows */
	__type(key, __u32);
	__type(value, struct sonde_alloc_hit);
} alloc_hits MAP("sonde_mem_hits");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_alloc_gate);
} alloc_gate MAP("sonde_mem_gate");

static __always_inline __u64 nr_switches(const struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/* Calls and numbers from an earlier window are forgotten: their returns were not seen. */
WALK_FUNCTION int enter_window(struct thread *thread, __u32 window, __u64 begin_ns)
{
	if (!thread)
		return 0; /* never */
	if (thread->gate != window) {
		thread->gate = window;
		thread->busy_ns = 0;
		thread->nr_traps = thread->nr_runs = 0;
		for (int i = 0; i < SONDE_ALLOC_CALLS; i++)
			thread->calls[i].sp = 0;
	}
	thread->nr_traps++;
	thread->begin_ns = begin_ns;
	thread->switches = nr_switches(bpf_get_current_task_btf());
	return 0;
}

/* A run in which the thread lost its CPU is not measured: it counts as long as the others. */
static __always_inline void charge_run(struct thread *thread)
{
	if (nr_switches(bpf_get_current_task_btf()) != thread->switches)
		return;
	thread->busy_ns += bpf_ktime_get_ns() - thread->begin_ns;
	thread->nr_runs++;
}

/* The numbers so far: those of a thread's last hit are those of the window. */
static __always_inline void note_cost(const struct thread *thread, struct sonde_alloc_hit *hit)
{
	hit->busy_ns = thread->busy_ns;
	hit->nr_traps = thread->nr_traps;
	hit->nr_runs = thread->nr_runs;
}

/* Operator new may throw, and no exception passes a frame whose return is probed. */
static __always_inline bool may_throw(const struct call *call)
{
	return call->block.call == SONDE_ALLOC_NEW;
}

static __always_inline __u64 return_pc_at(__u64 sp)
{
	__u64 pc = 0;

	if (WALK_RETURN_BYTES)
		bpf_probe_read_user(&pc, sizeof(pc), (const void *)sp); /* else 0: not known */
	return pc;
}

/* The ends of such calls are not seen: one is over when something else is where its return address was. */
WALK_FUNCTION int forget_ended(struct thread *thread)
{
	for (int i = 0; thread && i < SONDE_ALLOC_CALLS; i++) {
		struct call *call = &thread->calls[i];

		if (call->sp && may_throw(call) && (!call->return_pc || return_pc_at(call->sp) != call->return_pc))
			call->sp = 0;
	}
	return 0;
}

/* 1: the call's return is not to be seen. */
WALK_FUNCTION int log_hit(struct thread *thread, struct call *call)
{
	__u64 tgid_tid = bpf_get_current_pid_tgid();
	struct sonde_alloc_counters *count = alloc_count();
	struct sonde_alloc_hit *hit;
	struct sonde_alloc_gate *gate;
	__u32 number;

	gate = zeroth(&alloc_gate);
	if (!thread || !call || !gate || !count)
		return 1; /* there are always some */
	if (gate->window != thread->gate)
		return 1; /* it was closed meanwhile */
	number = __sync_fetch_and_add(&gate->nr_hits, 1);
	call->hit = number;
	count_one(&count->counted);
	hit = bpf_map_lookup_elem(&alloc_hits, &number);
	if (!hit)
		return 1; /* user space sees it by the number */
	*hit = (struct sonde_alloc_hit){ .user_stack = call->block.user_stack,
					 .runtime_stack = call->block.runtime_stack,
					 .bytes = call->block.bytes,
					 .tgid = tgid_tid >> 32,
					 .tid = tgid_tid,
					 .generation = call->block.generation,
					 .user_state = call->block.user_state,
					 .runtime_state = call->block.runtime_state,
					 .returned = may_throw(call) };
	charge_run(thread);
	note_cost(thread, hit);
	return may_throw(call);
}
