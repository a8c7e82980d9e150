/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The working memory of a sample, one per CPU. One perf_event program never interrupts another on the same CPU (the kernel's bpf_prog_active), so one is enough, and what one
 * program leaves in it the one that it tail-calls finds. */
#pragma once
#include "../abi/go.h"
#include "../abi/perl.h"
#include "../abi/php.h"
#include "../abi/python.h"
#include "go_label_walk.h"
#include "maps.h"
#include "runtime.h"
#include "unwind.h"

struct scratch {
	struct walk walk;
	__u64 window_ns;
	__u32 nr_raws, nr_wakes;  /* since then */
	__u32 nr_walked;          /* user stacks, for the audit */
	__u32 runtimes_left;      /* bits as in struct sonde_process: whose programs have not run yet */
	struct sonde_sample_record sample;
	union {
		struct {
			struct sonde_stack_record header;
			__u64 frames[SONDE_MAX_USER_FRAMES];
		} stack;
		struct {
			struct sonde_raw_record header;
			__u8 bytes[SONDE_RAW_MAX_BYTES + WALK_PAGE_BYTES]; /* the last page is for the verifier */
		} raw;
	};
	union { /* what is known of the process: of the runtime that walks now */
		struct sonde_python python;
		struct sonde_php php;
		struct sonde_perl perl;
		struct sonde_go go;
	};
	struct runtime_walk runtime;
	struct go_label_walk go_labels;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader: one per possible CPU */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

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
