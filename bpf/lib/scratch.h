/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The working memory of a sample: on each CPU, as many levels as programs can be at work there at a time (docs/internals/triggers.md). A
 * tick interrupts another trigger's walk; where the kernel may be preempted, so does another thread's program. A program takes the first
 * free level. The program that it tail-calls finds that level by the address of the context: the context is on the stack in use, so no two
 * runs have the same one at a time. */
#pragma once
#include "../labels/label_walk.h"
#include "maps.h"
#include "../runtimes/runtime.h"
#include "../walk/unwind.h"
#include "map.h"

#define SCRATCH_MAX_LEVELS 8

struct scratch {
	struct walk walk;         /* first, so that its address need not be kept beside this one's */
	__u64 run;                /* address of the context of the run that has it; 0: free */
	__u64 nr_users;           /* runs that have it or are just finding out that it is taken */
	__u64 window_ns;
	__u32 nr_deferred, nr_deferred_pages, nr_wakes; /* since window_ns */
	__u32 nr_walked;          /* user stacks, for the audit */
	__u64 stack_at;           /* address of the event's arguments, on the kernel stack in use */
	__u64 syscall;            /* of the current thread, or NO_SYSCALL */
	__u64 number;
	__u32 compat;             /* the thread is in 32-bit code */
	__u32 table_generation, exec;         /* table_generation_now() before the look-up of the process, and the thread's self_exec_id */
	__u32 runtimes_left;      /* bits as in struct sonde_process: runtimes whose programs have not run yet */
	__u32 nr_handovers;       /* of the walk to programs of runtimes */
	__u64 kept[2];            /* by the trigger's first program, for its last one */
	struct sonde_sample_record sample;
	struct sonde_deferred_record deferred; /* from the walk's start on it has the registers that the walk began with */
	struct {
		struct sonde_stack_record header;
		__u64 frames[SONDE_MAX_USER_FRAMES];
	} stack;
	union sonde_runtime_known known; /* of the process, for the runtime that walks now */
	struct runtime_walk runtime;
	struct sonde_code_record code;
	struct label_walk labels;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader: for each possible CPU 1 + cfg.more_levels */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches MAP("sonde_scratch");

/* Reads user memory and counts the reads, for the clock (walk/walk_clock.h). */
static __always_inline long read_user(struct walk *w, void *to, __u32 size, __u64 from)
{
	w->nr_reads++;
	return bpf_probe_read_user(to, size, (const void *)from);
}

/* Fills in the start of a sample, and resets what is left of the last one. */
static __always_inline void begin_sample(struct scratch *s, __u64 time_ns, __u64 tgid_tid)
{
	s->sample = (struct sonde_sample_record){
		.type = SONDE_RECORD_SAMPLE, .cpu = bpf_get_smp_processor_id(), .time_ns = time_ns, .tgid = tgid_tid >> 32, .tid = tgid_tid
	};
	s->runtimes_left = s->walk.owner = s->nr_handovers = 0;
	s->walk.nr_looks = s->walk.nr_reads = 0;
	s->runtime.nr_frames = 0;
	s->runtime.known_hash = 0;
	s->runtime.record.stop = 0;
	s->runtime.record.fault = 0;
}

static __always_inline struct scratch *scratch_of(__u32 slot)
{
	return bpf_map_lookup_elem(&scratches, &slot);
}

/* The slot of the CPU's first level; the other levels follow it. */
static __always_inline __u32 first_slot(void)
{
	return bpf_get_smp_processor_id() * (1 + cfg.more_levels);
}

static const bool scratch_nests;

/* Where runs nest (scratch_nests) a plain addition is enough: nobody is preempted there, and a program that interrupts the addition
 * restores the value before it ends. (The iterator over all threads may be preempted, but there is only one.) Elsewhere it is one atomic
 * instruction. */
static __always_inline void scratch_add(struct scratch *s, __u64 nr)
{
	if (scratch_nests)
		*(volatile __u64 *)&s->nr_users += nr;
	else
		__sync_fetch_and_add(&s->nr_users, nr);
}

/* Takes a level for the run with this context. NULL: all levels of this CPU are taken; else call scratch_leave at each end of the run. Adds
 * and then looks, because exchanges came with Linux 5.12: a run that finds itself alone after the addition has the level. A thread
 * preempted in between at worst keeps others from it. */
static __always_inline struct scratch *scratch_take(const void *ctx)
{
	__u32 slot = first_slot();

#pragma clang loop unroll(disable)
	for (__u32 level = 0; level < SCRATCH_MAX_LEVELS && level <= cfg.more_levels; level++, slot++) {
		struct scratch *s = scratch_of(slot);

		if (!s)
			break;
		scratch_add(s, 1);
		if (*(volatile __u64 *)&s->nr_users == 1) {
			*(const void *volatile *)&s->run = ctx;
			s->walk.number = slot;
			return s;
		}
		scratch_add(s, -1);
	}
	return 0;
}

static __always_inline void scratch_leave(struct scratch *s)
{
	*(volatile __u64 *)&s->run = 0;
	scratch_add(s, -1);
}

/* The level that the program before the tail call has taken; NULL: none. */
static __always_inline struct scratch *scratch_of_run(const void *ctx)
{
	__u32 slot = first_slot();

#pragma clang loop unroll(disable)
	for (__u32 level = 0; level < SCRATCH_MAX_LEVELS && level <= cfg.more_levels; level++, slot++) {
		struct scratch *s = scratch_of(slot);

		if (s && s->run == (__u64)ctx)
			return s;
	}
	return 0;
}

/* A walk has the number of its scratch. */
static __always_inline struct walk *walk_of(__u32 number)
{
	struct scratch *s = scratch_of(number);

	return s ? &s->walk : 0;
}

#define MAX_PUT_ASIDE 16 /* per thread, from the leaf; the kernel has up to 64 (MAX_URETPROBE_DEPTH in kernel/events/uprobes.c) */

/* See walk/unwind.h. Found by the stack pointer at the function's entry. */
static __always_inline __u64 user_return(const struct walk *w)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct return_instance *put;

	if (!bpf_core_field_exists(task->utask))
		return 0;
	put = BPF_CORE_READ(task, utask, return_instances);
#pragma clang loop unroll(disable)
	for (int i = 0; i < MAX_PUT_ASIDE && put; i++, put = BPF_CORE_READ(put, next)) {
		if (BPF_CORE_READ(put, stack) == w->sp - WALK_RETURN_BYTES)
			return BPF_CORE_READ(put, orig_ret_vaddr);
	}
	return 0;
}

static __always_inline struct runtime_walk *runtime_walk_of(__u32 number)
{
	struct scratch *s = scratch_of(number);

	return s ? &s->runtime : 0;
}
