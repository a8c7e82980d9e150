// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs of `leak --kernel`: the tracepoints of the kernel's allocators (slab caches, kmalloc, pages) keep each block from its
 * allocation to its free, with the kernel stack that asked for it. They run in any context but NMIs, so the map is allocated in advance,
 * and nothing here allocates. Counters are atomic. docs/internals/memory.md */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "abi/kmem.h"
#include "lib/maps.h"
#include "lib/scratch.h"
#include "lib/send.h"
#include "lib/user_walk.h"
#include "lib/map.h"

#define EEXIST 17
#define E2BIG  7

const volatile struct sonde_kmem_config kmem_cfg = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set by the loader: --max-live */
	__type(key, __u64);
	__type(value, struct sonde_kmem_block);
} kmem_blocks MAP("sonde_kmem_blk");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sonde_kmem_counters);
} kmem_counters MAP("sonde_kmem_stat");

struct kmem_cache___size {
	unsigned int size; /* with what surrounds an object */
} __attribute__((preserve_access_index));

static __always_inline struct sonde_kmem_counters *kmem_count(void)
{
	return zeroth(&kmem_counters);
}

static __always_inline bool is_own(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	return tgid == kmem_cfg.own_tgid || BPF_CORE_READ(task, real_parent, tgid) == (int)kmem_cfg.own_tgid;
}

static __always_inline __u32 weight_of(__u64 bytes)
{
	if (bytes < kmem_cfg.min_bytes || (kmem_cfg.max_bytes && bytes > kmem_cfg.max_bytes))
		return 0;
	if (kmem_cfg.sample_rate > 1)
		return bpf_get_prandom_u32() % kmem_cfg.sample_rate ? 0 : kmem_cfg.sample_rate;
	return 1;
}

static __always_inline void take_stack(__u64 *ctx, struct sonde_kmem_block *block, struct sonde_kmem_counters *count)
{
	struct scratch *s = scratch_take(ctx);

	block->kernel_state = SONDE_STACK_LOST;
	if (!s) {
		count_one(&count->no_scratch);
		return;
	}
	begin_sample(s, block->time_ns, bpf_get_current_pid_tgid());
	block->kernel_state = kernel_state(s, get_kernel_stack(ctx, s), SONDE_TRACEPOINT_FRAMES, block->time_ns, &block->kernel_stack);
	scratch_leave(s);
}

static __always_inline int add_block(__u64 *ctx, __u64 at, __u64 bytes)
{
	struct sonde_kmem_counters *count = kmem_count();
	struct sonde_kmem_block block = { .bytes = bytes, .time_ns = bpf_ktime_get_ns(), .weight = weight_of(bytes) };
	long err;

	if (!count || !at)
		return 0;
	if (is_own()) {
		count_one(&count->own);
		return 0;
	}
	count_one(&count->allocs);
	if (!block.weight) {
		count_one(&count->left_out);
		return 0;
	}
	take_stack(ctx, &block, count);
	err = bpf_map_update_elem(&kmem_blocks, &at, &block, BPF_NOEXIST);
	if (err == -EEXIST) {
		count_one(&count->reused);
		err = bpf_map_update_elem(&kmem_blocks, &at, &block, BPF_ANY);
	}
	if (err)
		count_one(err == -E2BIG ? &count->full : &count->lost);
	return 0;
}

static __always_inline int remove_block(__u64 at)
{
	struct sonde_kmem_counters *count = kmem_count();

	if (count && at)
		count_one(bpf_map_delete_elem(&kmem_blocks, &at) ? &count->frees_unknown : &count->frees);
	return 0;
}

SEC("raw_tp/kmalloc") /* call site, block, bytes asked for, bytes */
int sonde_kmalloc(__u64 *ctx)
{
	return add_block(ctx, ctx[1], ctx[3]);
}

SEC("raw_tp/kfree") /* call site, block */
int sonde_kfree(__u64 *ctx)
{
	return remove_block(ctx[1]);
}

SEC("raw_tp/kmem_cache_alloc") /* call site, object, cache */
int sonde_slab_new(__u64 *ctx)
{
	return add_block(ctx, ctx[1], BPF_CORE_READ((struct kmem_cache___size *)ctx[2], size));
}

SEC("raw_tp/kmem_cache_free") /* call site, object, cache */
int sonde_slab_free(__u64 *ctx)
{
	return remove_block(ctx[1]);
}

SEC("raw_tp/mm_page_alloc") /* the first page, their number as a power of two */
int sonde_page_new(__u64 *ctx)
{
	return add_block(ctx, ctx[0], 1ULL << (ctx[1] & 31) << kmem_cfg.page_shift);
}

SEC("raw_tp/mm_page_free") /* the first page */
int sonde_page_free(__u64 *ctx)
{
	return remove_block(ctx[0]);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
