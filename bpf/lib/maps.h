/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps that all triggers share, and the accessors that walk/unwind.h needs. The loader sets sizes that depend on the machine or the
 * command line. */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../abi/unwind.h"
#include "../compat/kernel.h"
#include "knobs.h"
#include "map.h"

struct chunk { /* SONDE_CHUNK_WORDS words; user space writes them through a mapping of the memory */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, SONDE_CHUNK_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SONDE_MAX_CHUNKS);
	__uint(key_size, sizeof(__u32));
	__array(values, struct chunk);
} chunks MAP("sonde_chunks");

struct { /* rule number -> rule */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set by the loader */
	__type(key, __u32);
	__type(value, struct sonde_rule);
} rules MAP("sonde_rules");

struct { /* tgid -> position of its struct sonde_process */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC); /* only user space writes */
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} processes MAP("sonde_processes");

struct { /* grows with each change of the tables of processes: while it is the same, they are unchanged. 0: no change yet */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} table_generation MAP("sonde_table_gen");

struct { /* the number of the recording's window: user space increments it */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} window_nr MAP("sonde_window");

struct { /* sonde_sent_key of the hashes of the stacks that were sent -> SONDE_STACK_* */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set by the loader: --stack-storage-size */
	__type(key, __u64);
	__type(value, __u8);
} stacks MAP("sonde_stacks");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set by the loader */
} ring MAP("sonde_ring");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_counters);
} counters MAP("sonde_counters");

/* For counts that several triggers share: one trigger may interrupt another's addition. (Always adds 1: compilers turn an atomic addition
 * of 0 into another instruction, which Linux 5.10 does not have.) */
static __always_inline void count_one(__u64 *count)
{
	__sync_fetch_and_add(count, 1);
}

struct { /* tgid -> when it was forked or last replaced its program: what was known of the id before belongs to another */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192); /* more than start between two readings of the side-band */
	__type(key, __u32);
	__type(value, __u64);
} start_times MAP("sonde_starts");

struct walk;

static __always_inline const __u32 *chunk_at(const struct walk *w, __u32 pos)
{
	__u32 number = pos >> SONDE_CHUNK_SHIFT;
	void *inner = bpf_map_lookup_elem(&chunks, &number);

	if (!inner)
		return 0;
	return zeroth(inner);
}

static __always_inline __u32 table_generation_now(void)
{
	volatile const __u64 *serial = zeroth(&table_generation);

	return serial ? *serial : 0;
}

static __always_inline __u64 window_number(void)
{
	volatile const __u64 *number = zeroth(&window_nr);

	return number ? *number : 0;
}

static __always_inline const struct sonde_rule *rule_at(const struct walk *w, __u32 number)
{
	return bpf_map_lookup_elem(&rules, &number);
}

static __always_inline long read_user(struct walk *w, void *to, __u32 size, __u64 from); /* see lib/scratch.h */

static __always_inline __u64 user_tls_base(const struct walk *w)
{
	struct task_struct *task = (void *)bpf_get_current_task();

#ifdef SONDE_ARM64
	return BPF_CORE_READ(task, thread.uw.tp_value); /* programs set it before they have threads, clone for those */
#else
	return BPF_CORE_READ(task, thread.fsbase); /* kept up to date by arch_prctl and clone, which set it for C and for Go */
#endif
}

/* Kernels before 5.12 allow only numbers as arguments of global functions. */
#define WALK_BY_NUMBER
#define WALK_PUT_ASIDE
#define WALK_FUNCTION __attribute__((noinline))

static __always_inline __u64 user_return(const struct walk *w); /* see lib/scratch.h */
