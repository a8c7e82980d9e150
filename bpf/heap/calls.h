/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* calls: what the programs of allocators know of each thread: its calls in progress, its last stacks. And what they count. */
#pragma once
#include "abi/alloc.h"
#include "lib/map.h"
#include "lib/maps.h"
#include "lib/user_stack_cache.h"

#define STACKS 4 /* kept of a thread: it allocates in few places at a time */

const volatile struct sonde_alloc_config alloc_cfg = {};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_alloc_counters);
} alloc_counters MAP("sonde_mem_stat");

struct call { /* of an allocator's function, from its entry to its return */
	__u64 sp;                    /* at the entry; 0: none. Identifies the call in its thread */
	__u64 out;                   /* posix_memalign: where it writes the address */
	__u64 old_addr;              /* realloc, mremap: the block that it is given */
	struct sonde_alloc_block block, old;
	__u32 has_old;               /* `old` was removed, and is put back if the call fails */
	__u32 is_left_out;
	__u64 old_bytes;             /* mremap: so many of the old region */
	__u64 inner_addr, inner_bytes; /* the block that the last function it called returned; address 0: none */
	__u32 is_fixed;              /* mmap: it replaces what is there */
	__u32 hit;                   /* alloc_cfg.windows: number of its hit */
	__u64 pc, return_pc;         /* alloc_cfg.windows: of the probe; where it returns to, of operator new */
};

struct thread {
	struct call calls[SONDE_ALLOC_CALLS];
	__u32 next;                  /* the one that is given up when there are too many */
	__u32 next_stack, nr_hits;
	__u32 fresh;                 /* number + 1 of the entry of `stacks` that was just filled; 0: none */
	__u64 window;                /* of the recording, that they belong to */
	struct stack_cache stacks[STACKS];
	__u64 begin_ns, busy_ns;     /* alloc_cfg.windows: of the run in progress; as in struct sonde_alloc_hit */
	__u64 switches;              /* that the thread had made then */
	__u32 gate;                  /* the window of the gate that the calls and the numbers here belong to */
	__u32 nr_traps, nr_runs;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} alloc_threads MAP("sonde_mem_calls");

static __always_inline struct sonde_alloc_counters *alloc_count(void)
{
	return zeroth(&alloc_counters);
}
