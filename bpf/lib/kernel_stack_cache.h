/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A cache of a thread's kernel stacks. The kernel's unwinder takes 1 to 2 us, and a thread's kernel stack is nearly always one that it had
 * before. The stack is the same when each of its return addresses is at the same offset, counted from the event's arguments on that stack:
 * from the lowest one on, each decides where the next one is. The unwinder does not say which words are return addresses. So the cache
 * keeps all words that look like code addresses; the true ones are among them. When the unwinder finds the same stack again though some of
 * these words differ, those are no return addresses, and the cache drops them. Only the outermost frame, of the entry code, is at another
 * offset each time: the kernel begins a system call's stack at random. Its callee identifies it, as the entry code calls each function at
 * one place. (The thread's system call number is compared as well; faults and interrupts have none.) */
#pragma once
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../compat/kernel.h"
#include "scratch.h"

#define KERNEL_STACK_CACHE_ENTRIES 2
#define KERNEL_STACK_CACHE_WORDS 64 /* a power of two */

struct kernel_stack_cache {
	__u64 hash;                     /* 0: the entry is empty */
	__u64 syscall;
	__u32 nr_words, nr_bytes;       /* bytes read from the arguments on */
	__u32 nr_kept, pad;             /* used while words are dropped */
	__u32 words[KERNEL_STACK_CACHE_WORDS]; /* the low halves: all code has the same high half */
	__u16 offs[KERNEL_STACK_CACHE_WORDS];  /* in words */
};

struct kernel_stack_caches {
	struct kernel_stack_cache of[KERNEL_STACK_CACHE_ENTRIES];
};

#ifdef SONDE_ARM64
#define KERNEL_CODE 0xffff800000000000ULL /* the image, and the modules beside it */
#define KERNEL_CODE_MASK 0xffffffff00000000ULL
#else
#define KERNEL_CODE 0xffffffff80000000ULL /* the image, and the modules behind it; small negative numbers are excluded below */
#define KERNEL_CODE_MASK 0xffffffff80000000ULL
#endif
#define KERNEL_CODE_END 0xffffffffff000000ULL
#define KERNEL_CODE_HIGH (KERNEL_CODE & 0xffffffff00000000ULL)

static __always_inline __u64 stack_bytes(struct task_struct *task)
{
	return bpf_core_field_exists(task->kasan_depth) ? 2 * KERNEL_STACK_BYTES : KERNEL_STACK_BYTES;
}

/* The address as a number that arithmetic is allowed on. */
static __always_inline __u64 as_number(struct scratch *s, const void *address)
{
	*(const void *volatile *)&s->number = address;
	return *(volatile __u64 *)&s->number;
}

/* Number of stack bytes from the arguments on; 0: more than are compared, or the stack in use is not the thread's. */
static __always_inline __u64 kernel_stack_bytes(struct task_struct *task, __u64 *ctx, struct scratch *s)
{
	__u64 size;

	s->stack_at = as_number(s, ctx);
	size = as_number(s, task->stack) + stack_bytes(task) - s->stack_at;
	return size <= WALK_BLOCK_BYTES ? size & ~7ULL : 0;
}

/* True if the stack, whose first nr_bytes are in the walk's block, is the cached one. */
static __always_inline bool kernel_stack_cache_same(const struct kernel_stack_cache *cached, struct scratch *s, __u64 nr_bytes)
{
	__u64 differs = 0;

	if (!cached->hash || cached->syscall != s->syscall || cached->nr_bytes > nr_bytes)
		return false;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < KERNEL_STACK_CACHE_WORDS; i++) {
		if (i >= cached->nr_words)
			break;
		differs |= s->walk.block[cached->offs[i] & (WALK_BLOCK_BYTES / 8 - 1)] ^ (KERNEL_CODE_HIGH | cached->words[i]);
	}
	return !differs;
}

/* The hash of the cached stack that equals the current one, which has `size` bytes; 0: a cache miss. */
WALK_FUNCTION __u64 kernel_stack_cache_find(const struct kernel_stack_caches *cache, __u32 slot, __u64 size)
{
	struct scratch *s = scratch_of(slot);
	__u64 longest;

	if (!s || !cache)
		return 0;
	longest = cache->of[0].nr_bytes > cache->of[1].nr_bytes ? cache->of[0].nr_bytes : cache->of[1].nr_bytes;
	if (size > longest)
		size = longest;
	barrier_var(size);
	if (!size || size > WALK_BLOCK_BYTES || bpf_probe_read_kernel(s->walk.block, size, (const void *)s->stack_at))
		return 0;
	if (kernel_stack_cache_same(&cache->of[0], s, size))
		return cache->of[0].hash;
	return kernel_stack_cache_same(&cache->of[1], s, size) ? cache->of[1].hash : 0;
}

/* Keeps the word if it looks like a code address. A function of its own, so that the verifier checks it once. Returns 0; 1: too many
 * words. */
WALK_FUNCTION int kernel_stack_cache_add(struct kernel_stack_cache *cached, __u32 slot, __u32 i)
{
	struct scratch *s = scratch_of(slot);
	__u64 word;
	__u32 nr;

	if (!s || !cached)
		return 1;
	word = s->walk.block[i & (WALK_BLOCK_BYTES / 8 - 1)];
	if ((word & KERNEL_CODE_MASK) != KERNEL_CODE || word >= KERNEL_CODE_END)
		return 0;
	nr = cached->nr_words;
	if (nr >= KERNEL_STACK_CACHE_WORDS)
		return 1;
	cached->offs[nr & (KERNEL_STACK_CACHE_WORDS - 1)] = i;
	cached->words[nr & (KERNEL_STACK_CACHE_WORDS - 1)] = word;
	cached->nr_bytes = (i + 1) * 8;
	cached->nr_words = nr + 1;
	return 0;
}

/* Keeps an unwound stack, if possible. */
WALK_FUNCTION int kernel_stack_cache_keep(struct kernel_stack_cache *cached, __u32 slot, __u64 size, __u64 hash)
{
	struct scratch *s = scratch_of(slot);

	if (!s || !cached)
		return 0;
	cached->hash = 0;
	cached->nr_words = 0;
	if (!size || size > WALK_BLOCK_BYTES || bpf_probe_read_kernel(s->walk.block, size, (const void *)s->stack_at))
		return 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < WALK_BLOCK_BYTES / 8; i++) {
		if (i >= size / 8)
			break;
		if (kernel_stack_cache_add(cached, slot, i))
			return 0;
	}
	cached->syscall = s->syscall;
	cached->hash = cached->nr_words ? hash : 0;
	return 0;
}

/* Keeps the i-th word if it is unchanged. */
WALK_FUNCTION int kernel_stack_cache_retain(struct kernel_stack_cache *cached, __u32 slot, __u32 i)
{
	struct scratch *s = scratch_of(slot);
	__u32 off, word, nr;

	if (!s || !cached)
		return 0;
	off = cached->offs[i & (KERNEL_STACK_CACHE_WORDS - 1)];
	word = cached->words[i & (KERNEL_STACK_CACHE_WORDS - 1)];
	if (s->walk.block[off & (WALK_BLOCK_BYTES / 8 - 1)] != (KERNEL_CODE_HIGH | word))
		return 0;
	nr = cached->nr_kept;
	cached->offs[nr & (KERNEL_STACK_CACHE_WORDS - 1)] = off;
	cached->words[nr & (KERNEL_STACK_CACHE_WORDS - 1)] = word;
	cached->nr_bytes = (off + 1) * 8;
	cached->nr_kept = nr + 1;
	return 0;
}

/* The stack is the cached one, but words differ: drops those, as they are no return addresses. */
WALK_FUNCTION int kernel_stack_cache_prune(struct kernel_stack_cache *cached, __u32 slot)
{
	struct scratch *s = scratch_of(slot);
	__u64 size;

	if (!s || !cached)
		return 0;
	size = cached->nr_bytes;
	barrier_var(size);
	if (size > WALK_BLOCK_BYTES || bpf_probe_read_kernel(s->walk.block, size, (const void *)s->stack_at))
		return 0;
	cached->nr_kept = 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < KERNEL_STACK_CACHE_WORDS; i++) {
		if (i >= cached->nr_words)
			break;
		kernel_stack_cache_retain(cached, slot, i);
	}
	cached->nr_words = cached->nr_kept;
	cached->syscall = s->syscall;
	return 0;
}
