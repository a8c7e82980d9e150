/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* alloc: what bpf/heap/alloc.bpf.c keeps of memory that was allocated and is not free yet, and what it counts. */
#pragma once
#include "record.h"
#include "types.h"

/* The functions of allocators: how their arguments and results are to be read. Each uprobe has one as its cookie. X(id, name) */
#define SONDE_ALLOC_LIST(X) \
	X(MALLOC, "malloc") X(CALLOC, "calloc") X(REALLOC, "realloc") X(REALLOCARRAY, "reallocarray") \
	    X(ALIGNED_ALLOC, "aligned_alloc") X(POSIX_MEMALIGN, "posix_memalign") X(MEMALIGN, "memalign") X(VALLOC, "valloc") \
		X(PVALLOC, "pvalloc") X(NEW, "operator new") X(FREE, "free") X(DELETE, "operator delete") X(MMAP, "mmap") \
		    X(MUNMAP, "munmap") X(MREMAP, "mremap") X(OWN, "own_function") /* with own_tgid */
#define X(id, name) SONDE_ALLOC_##id,
enum sonde_alloc_call { SONDE_ALLOC_LIST(X) SONDE_ALLOC_COUNT };
#undef X

/* Does the function return memory? Then its end is probed, too. */
static inline int sonde_alloc_returns(enum sonde_alloc_call call)
{
	return call != SONDE_ALLOC_FREE && call != SONDE_ALLOC_DELETE && call != SONDE_ALLOC_MUNMAP;
}

struct sonde_alloc_config {
	__u64 min_bytes, max_bytes;          /* only allocations of these sizes; max 0: no limit */
	__u64 sample_bytes;                  /* a block is tracked by the chance that one in so many bytes, at random, is in it; 0: all */
	__u32 sample_rate;                   /* one in so many, by chance; 0 and 1: all. Not both */
	__u32 only_tgid;                     /* the one process asked for; 0: the filters decide */
	__u32 held_tgid;                     /* stopped where its stacks cannot be walked yet (struct sonde_alloc_hold); 0: none */
	__u32 sums;                          /* 1: sums of what was allocated are kept, for each stack (struct sonde_alloc_sum) */
	__u32 windows;                       /* 1: only struct sonde_alloc_hit, while the gate is open; no blocks, no sums */
	__u32 own_tgid;                      /* with `windows`: hits of user space itself, without stacks, to measure what they cost */
};
_Static_assert(sizeof(struct sonde_alloc_config) == 48, "layout changed: bump SONDE_ABI_VERSION");

/* A command that has just begun allocates faster than its mappings become known. So it is stopped (SIGSTOP) until user space has read them,
 * and lets it go on. */
#define SONDE_ALLOC_MAX_HOLDS 256 /* code that never becomes known must not hold it for ever */

struct sonde_alloc_hold {
	__u32 is_held;                       /* set after the signal was sent; user space clears it, then sends SIGCONT */
	__u32 nr;                            /* so many times */
};

/* With alloc_cfg.windows. A call that began while the gate was open. */
#define SONDE_ALLOC_HITS 32768 /* of one window; more are counted */

struct sonde_alloc_hit {
	__u64 user_stack, runtime_stack;     /* as in struct sonde_stack_ids */
	__u64 bytes;                         /* as requested */
	__u64 busy_ns;                       /* what the programs have taken of the thread's time in this window, in nr_runs */
	__u32 tgid, tid;
	__u32 generation;
	__u32 nr_traps, nr_runs;             /* so many probes the thread has met in this window; so many were measured */
	__u8 user_state, runtime_state;      /* enum sonde_stack_state */
	__u8 failed;                         /* 1: the function returned no block */
	__u8 returned;                       /* 1: its return was seen, or is not looked at (operator new) */
};
_Static_assert(sizeof(struct sonde_alloc_hit) == 56, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_alloc_gate {
	__u32 window;                        /* its number; 0: the gate is closed */
	__u32 nr_hits;                       /* of this window, also those that found no room */
};

/* An exception cannot pass a frame whose return is probed: the program would end. So that of an operator new for so much is not. */
#define SONDE_ALLOC_LARGE_NEW (256u << 20)

#define SONDE_ALLOC_HEAP 0    /* blocks of an allocator */
#define SONDE_ALLOC_MAPPING 1 /* regions of mmap: an allocator may hand out one from its start */

struct sonde_alloc_key {
	__u64 addr;
	__u32 tgid;
	__u32 space;                         /* SONDE_ALLOC_HEAP or _MAPPING */
};

/* A block that is not free yet. */
struct sonde_alloc_block {
	__u64 bytes;                         /* as requested */
	__u64 time_ns;                       /* CLOCK_MONOTONIC, when it was requested */
	__u64 user_stack, runtime_stack;     /* as in struct sonde_stack_ids */
	__u32 generation;
	__u8 user_state, runtime_state;      /* enum sonde_stack_state */
	__u8 call;                           /* enum sonde_alloc_call */
	__u8 pad;                            /* zero */
	__u32 weight;                        /* of a sampled one: it stands for so many; else 1 */
	__u32 pad2;                          /* zero */
};
_Static_assert(sizeof(struct sonde_alloc_block) == 48, "layout changed: bump SONDE_ABI_VERSION");

struct sonde_alloc_sum_key { /* as in struct sonde_alloc_block */
	__u64 user_stack, runtime_stack;
	__u32 generation, tgid;
	__u8 user_state, runtime_state;
	__u8 pad[6];                         /* zero */
};
_Static_assert(sizeof(struct sonde_alloc_sum_key) == 32, "layout changed: bump SONDE_ABI_VERSION");

/* By powers of two, as in bpf/lib/log2.h; the last slot has all that is larger. */
#define SONDE_ALLOC_SIZES 48     /* up to 256 TiB */
#define SONDE_ALLOC_LIFETIMES 48 /* in us: up to 8 years */

/* All blocks of a stack since the start, each as many as its weight. */
struct sonde_alloc_sum {
	__u64 nr, bytes;
	__u64 nr_freed, lifetime_us;         /* of those that are free again */
	__u64 sizes[SONDE_ALLOC_SIZES];
	__u64 lifetimes[SONDE_ALLOC_LIFETIMES];
};

/* One per CPU. */
#define SONDE_ALLOC_COUNTER_LIST(X) \
	X(allocs)          /* calls that returned a block */ \
	X(counted)         /* calls, before anything else was probed; hits, with alloc_cfg.windows */ \
	X(failed)          /* calls that returned none */ \
	X(frees)           /* of known blocks, with those that realloc gave up */ \
	X(frees_unknown)   /* of blocks that were allocated before the start; glibc also frees, at a thread's end, what that had freed and \
				it had kept for it (tcache_thread_shutdown) */ \
	X(unmaps_unknown)  /* of regions, or parts of regions, that are not tracked */ \
	X(mappings)        /* calls of mmap and mremap that returned a region */ \
	X(inner_mappings)  /* an allocator's own, for its blocks: left out */ \
	X(reused)          /* blocks returned while they counted as allocated: by a function that calls another one, or freed unseen */ \
	X(left_out)        /* by size or sampling */ \
	X(large_news)      /* calls of operator new for SONDE_ALLOC_LARGE_NEW bytes or more, whose ends were not looked at */ \
	X(full_sums)       /* blocks that are in no sum, as there were too many stacks */ \
	X(filtered)        /* calls in other processes */ \
	X(full)            /* blocks that found no room in the map */ \
	X(no_memory)       /* blocks for which the kernel had no memory */ \
	X(no_storage)      /* calls in threads for which the kernel had no memory */ \
	X(unmatched)       /* ends of calls whose beginning was not seen */ \
	X(overtaken)       /* calls given up for newer ones of the same thread: more than SONDE_ALLOC_CALLS at a time */ \
	X(stack_cache_hits) /* stacks that the thread had had before */ \
	X(stack_cache_wrong) /* of those that were walked all the same: the cache had another */ \
	X(no_scratch)      /* blocks without a stack: too many programs at a time on the CPU */

struct sonde_alloc_counters {
#define X(field) __u64 field;
	SONDE_ALLOC_COUNTER_LIST(X)
#undef X
};

#define SONDE_ALLOC_CALLS 4 /* calls of one thread at a time: an allocator's functions call each other, a signal may strike in one */
