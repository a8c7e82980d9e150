/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The working memory of a sample, one per CPU. One perf_event program never interrupts another on the same CPU (the kernel's bpf_prog_active), so one is enough, and what one
 * program leaves in it the one that it tail-calls finds. */
#pragma once
#include "label_walk.h"
#include "maps.h"
#include "runtime.h"
#include "unwind.h"

struct scratch {
	struct walk walk;
	__u64 window_ns;
	__u32 nr_raws, nr_raw_pages, nr_wakes; /* since then */
	__u32 nr_walked;          /* user stacks, for the audit */
	__u64 stack_at;           /* where the event's arguments stand, on the kernel stack in use */
	__u64 syscall;            /* that the current thread is in, or NO_SYSCALL */
	__u64 number;
	__u32 compat;             /* it is in 32-bit code */
	__u32 told, exec;         /* told_serial() before the process was looked up, and the thread's self_exec_id */
	__u32 runtimes_left;      /* bits as in struct sonde_process: whose programs have not run yet */
	struct sonde_sample_record sample;
	struct sonde_raw_record raw; /* from the walk's begin on it has the registers that it began with */
	struct {
		struct sonde_stack_record header;
		__u64 frames[SONDE_MAX_USER_FRAMES];
	} stack;
	union sonde_runtime_known known; /* of the process: to the runtime that walks now */
	struct runtime_walk runtime;
	struct sonde_code_record code;
	struct label_walk labels;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader: one per possible CPU */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* Whoever reads the clock wants to know how often. */
static __always_inline long read_user(struct walk *w, void *to, __u32 size, __u64 from)
{
	w->nr_reads++;
	return bpf_probe_read_user(to, size, (const void *)from);
}

/* What a sample begins with, and nothing of the one before. */
static __always_inline void begin_sample(struct scratch *s, __u32 cpu, __u64 time_ns, __u64 tgid_tid)
{
	s->sample = (struct sonde_sample_record){ .type = SONDE_RECORD_SAMPLE, .cpu = cpu, .time_ns = time_ns, .tgid = tgid_tid >> 32, .tid = tgid_tid };
	s->runtimes_left = 0;
	s->walk.nr_looks = s->walk.nr_reads = 0;
	s->runtime.nr_frames = 0;
	s->runtime.known_hash = 0;
	s->runtime.record.stop = 0;
	s->runtime.record.fault = 0;
}

static __always_inline struct scratch *scratch_of(__u32 cpu)
{
	return bpf_map_lookup_elem(&scratches, &cpu);
}

/* Each CPU has its walk; the number is the CPU's. */
static __always_inline struct walk *walk_of(__u32 number)
{
	struct scratch *s = scratch_of(number);

	return s ? &s->walk : 0;
}

static __always_inline struct runtime_walk *runtime_walk_of(__u32 number)
{
	struct scratch *s = scratch_of(number);

	return s ? &s->runtime : 0;
}
