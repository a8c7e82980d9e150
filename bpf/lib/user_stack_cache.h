/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stacks of the current thread at an event of the scheduler, from the cache of those that it had before or by a walk. One of
 * STACK_CACHE_CHECK hits is walked all the same, and compared. */
#pragma once
#include "kernel_stack_cache.h"
#include "user_walk.h"
#include "wait_counters.h"
#include "../walk/stack_cache.h"

#define STACK_CACHE_CHECK 1024

struct cache {
	struct kernel_stack_caches kernel;
	struct stack_cache user[STACK_CACHE_ENTRIES];
	__u32 next_kernel, next_user; /* the entry that is replaced next */
	__u32 nr_hits;
	__u32 fresh;                    /* number + 1 of the user entry that was just filled; 0: none */
	__u64 waker;                    /* hash of the thread's last waker record, which was sent */
	__u64 window;                   /* the window that the entries belong to */
};

/* Empties the cache in a new window: payloads of an earlier one have to be sent again. */
WALK_FUNCTION int forget_earlier(struct cache *cache)
{
	__u64 number = window_number();

	if (!cache || cache->window == number)
		return 0;
	cache->window = number;
	cache->waker = 0;
	for (int i = 0; i < KERNEL_STACK_CACHE_ENTRIES; i++)
		cache->kernel.of[i].hash = 0;
	for (int i = 0; i < STACK_CACHE_ENTRIES; i++)
		cache->user[i].hash = 0;
	return 0;
}

static __always_inline struct cache *caches_of_window(struct cache *cache)
{
	if (cache)
		forget_earlier(cache);
	return cache;
}

WALK_FUNCTION int user_stack_cache_same(const struct stack_cache *cached, __u32 slot)
{
	struct scratch *s = scratch_of(slot);

	if (!s || !cached || !stack_cache_fits(cached, &s->walk))
		return 0;
	stack_cache_fetch(cached, &s->walk);
	return stack_cache_same(cached, &s->walk);
}

WALK_FUNCTION int user_stack_cache_keep(struct stack_cache *cached, __u32 slot, __u64 hash)
{
	struct scratch *s = scratch_of(slot);

	if (s && cached)
		stack_cache_keep(cached, &s->walk, s->deferred.regs, hash);
	return 0;
}

/* Reads the clock only where the time is needed. */
static __always_inline void set_time(struct scratch *s)
{
	if (!s->sample.time_ns)
		s->sample.time_ns = bpf_ktime_get_ns();
}

/* True if this hit is to be checked. */
static __always_inline bool is_checked(struct cache *cache, struct sonde_wait_counters *count)
{
	count->stack_cache_hits++;
	if (++cache->nr_hits % STACK_CACHE_CHECK)
		return false;
	count->stack_cache_checks++;
	return true;
}

static __always_inline void learn_kernel_stack(struct scratch *s, struct cache *cache, __u64 size)
{
	if (cache->kernel.of[0].hash == s->sample.kernel_stack) {
		kernel_stack_cache_prune(&cache->kernel.of[0], s->walk.number);
	} else if (cache->kernel.of[1].hash == s->sample.kernel_stack) {
		kernel_stack_cache_prune(&cache->kernel.of[1], s->walk.number);
	} else {
		kernel_stack_cache_keep(&cache->kernel.of[cache->next_kernel & (KERNEL_STACK_CACHE_ENTRIES - 1)], s->walk.number, size,
					s->sample.kernel_stack);
		cache->next_kernel++;
	}
}

/* The slow path: a miss, or a hit to be checked. Returns enum sonde_stack_state. */
static __noinline int unwind_kernel_side(__u64 *ctx, struct scratch *s, struct cache *cache, __u64 size, struct sonde_wait_counters *count)
{
	__u64 known = s->sample.kernel_stack;
	enum sonde_stack_state state;

	set_time(s);
	state = kernel_state(s, get_kernel_stack(ctx, s), SONDE_TRACEPOINT_FRAMES, s->sample.time_ns, &s->sample.kernel_stack);
	if (known && known != s->sample.kernel_stack)
		count->stack_cache_wrong++;
	if (!known && size && state == SONDE_STACK_STORED)
		learn_kernel_stack(s, cache, size);
	return state;
}

/* cache: NULL: the thread has none. Returns enum sonde_stack_state. */
static __always_inline int kernel_stack_by_cache(struct task_struct *task, __u64 *ctx, struct scratch *s, struct cache *cache,
						 struct sonde_wait_counters *count)
{
	__u64 size = cache ? kernel_stack_bytes(task, ctx, s) : 0,
	      known = size ? kernel_stack_cache_find(&cache->kernel, s->walk.number, size) : 0;

	s->sample.kernel_stack = known;
	if (known && !is_checked(cache, count))
		return SONDE_STACK_STORED;
	return unwind_kernel_side(ctx, s, cache, size, count);
}

/* The entry was just found right, or made. Labels may differ each time, so the process of a runtime with labels is looked up each time. */
static __always_inline void note_generation(struct stack_cache *cached, const struct scratch *s)
{
	cached->table_generation = s->walk.runtimes & SONDE_RUNTIMES_WITH_LABELS ? 0 : s->table_generation;
	cached->exec = s->exec;
}

static __always_inline __u64 find_slowly(struct cache *cache, const struct scratch *s)
{
	for (int i = 0; i < STACK_CACHE_ENTRIES; i++) {
		if (user_stack_cache_same(&cache->user[i], s->walk.number)) {
			note_generation(&cache->user[i], s);
			return cache->user[i].hash;
		}
	}
	return 0;
}

#define USER_SIDE_WALKS (-1) /* not an enum sonde_stack_state */

/* The slow path: a miss by registers alone, or a hit to be checked, with its hash in user_stack. Returns enum sonde_stack_state, or
 * USER_SIDE_WALKS: the walk is ready for its first step. */
WALK_FUNCTION int begin_user_side(struct cache *cache, __u32 slot)
{
	struct sonde_wait_counters *count = wait_count();
	struct scratch *s = scratch_of(slot);

	if (!count || !s)
		return SONDE_STACK_NONE; /* there are always some */
	set_time(s);
	if (!s->sample.user_stack)
		s->table_generation = table_generation_now();
#ifdef SONDE_ARM64
	s->number = __sync_fetch_and_add(&s->number, 0); /* no read below is done before this */
#endif
	if (!take_regs(slot))
		return SONDE_STACK_NONE;
	enter_process(s, &s->sample);
	if (cache && !s->sample.user_stack) {
		s->sample.user_stack = find_slowly(cache, s);
		if (s->sample.user_stack && !is_checked(cache, count)) {
			s->sample.generation = s->walk.generation;
			s->runtimes_left = s->walk.runtimes & SONDE_RUNTIMES_WITH_LABELS;
			return SONDE_STACK_STORED;
		}
	}
	walk_enter(&s->walk);
	return USER_SIDE_WALKS;
}

/* After the walk. The programs of the process's runtimes run later; a cached stack is known to have no frames of theirs. */
WALK_FUNCTION int end_user_side(struct cache *cache, __u32 slot)
{
	__u32 i;
	struct sonde_counters *sent = zeroth(&counters);
	struct sonde_wait_counters *count = wait_count();
	struct scratch *s = scratch_of(slot);
	enum sonde_stack_state state;
	__u64 known;

	if (!sent || !count || !s)
		return SONDE_STACK_NONE; /* there are always some */
	known = s->sample.user_stack;
	end_walk(s);
	state = send_user(s, &s->sample, sent, 0);
	s->runtimes_left = s->walk.runtimes & ~(__u32)SONDE_RUNTIMES_THAT_OWN_CODE;
	if (known && known != s->sample.user_stack && state == SONDE_STACK_STORED &&
	    s->table_generation == table_generation_now()) /* else it was right, and has changed since */
		count->stack_cache_wrong++;
	if (!known && cache && state == SONDE_STACK_STORED) {
		i = cache->next_user++ & (STACK_CACHE_ENTRIES - 1);
		note_generation(&cache->user[i], s);
		user_stack_cache_keep(&cache->user[i], slot, s->sample.user_stack);
		cache->fresh = i + 1;
	}
	return state;
}

static __always_inline int walk_user_side(struct cache *cache, __u32 slot)
{
	int state = begin_user_side(cache, slot);
	struct scratch *s;

	if (state != USER_SIDE_WALKS)
		return state;
	s = scratch_of(slot);
	return s && walk_user(s) ? end_user_side(cache, slot) : SONDE_STACK_NONE; /* else a runtime's program goes on */
}

/* The fast path: compares without calls. It is for a process that has not called exec since, and of which user space has changed nothing
 * since. */
static __always_inline bool user_stack_cache_fits(const struct stack_cache *cached, const user_regs_t *regs, __u32 generation, __u32 exec)
{
	__u64 differs = 0;

	if (!cached->hash || !cached->is_bare || cached->table_generation != generation || cached->exec != exec || cached->tls_base ||
	    (cached->nr_words && !cached->near_bytes))
		return false;
	if (cached->pc != USER_PC(regs) || cached->sp != USER_SP(regs) || cached->bp != USER_BP(regs))
		return false;
	if (!cached->used_regs)
		return true;
#pragma clang loop unroll(full)
	for (int i = 0; i < WALK_NR_REGS; i++)
		differs |= (cached->regs[i] ^ user_reg(regs, i)) & -(__u64)(cached->used_regs >> i & 1);
	return !differs;
}

/* For a stack that ends because user space has not described enough yet. True if it is to be sent as a deferred stack now. If there are too
 * many of these, counts it as refused. */
static __always_inline bool would_be_raw(struct scratch *s, __u64 hash)
{
	struct sonde_counters *sent = zeroth(&counters);

	if (!sent || is_settled(hash))
		return false;
	set_time(s);
	if (may_send_deferred(s, s->sample.time_ns))
		return true;
	count_one(&sent->deferred_refused);
	return false;
}

/* The hash of an entry that fits, if the stack's words are the same as well and it need not be sent as a deferred stack; else 0. */
WALK_FUNCTION __u64 user_stack_cache_hash(const struct stack_cache *cached, __u32 slot)
{
	struct scratch *s = scratch_of(slot);
	__u32 size;

	if (!s || !cached)
		return 0;
	size = cached->near_bytes;
	barrier_var(size);
	if (size && (size > WALK_BLOCK_BYTES || read_user(&s->walk, s->walk.block, size, cached->at[0]) ||
		     !stack_cache_same_near(cached, &s->walk)))
		return 0;
	return cached->stop == SONDE_STOP_COMPLETE || !would_be_raw(s, cached->hash) ? cached->hash : 0;
}

static __always_inline __u64 find_by_regs(const struct cache *cache, struct scratch *s, const user_regs_t *regs)
{
	s->table_generation = table_generation_now();
	if (!is_64_bit(regs))
		return 0;
	for (int i = 0; i < STACK_CACHE_ENTRIES; i++) {
		if (user_stack_cache_fits(&cache->user[i], regs, s->table_generation, s->exec)) {
			s->sample.generation = cache->user[i].generation;
			return user_stack_cache_hash(&cache->user[i], s->walk.number);
		}
	}
	return 0;
}

/* Takes the user stack. regs: NULL: they have to be copied. */
static __always_inline int user_stack_by_cache(struct task_struct *task, const user_regs_t *regs, struct scratch *s, struct cache *cache,
					       struct sonde_wait_counters *count)
{
	__u64 known;

	s->exec = task->self_exec_id;
	known = cache && regs ? find_by_regs(cache, s, regs) : 0;
	s->sample.user_stack = known;
	return known && !is_checked(cache, count) ? SONDE_STACK_STORED : walk_user_side(cache, s->walk.number);
}

/* Call after the runtimes' programs. */
static __always_inline void end_stack_cache(struct cache *cache, const struct scratch *s)
{
	__u32 i = cache->fresh - 1;

	if (i < STACK_CACHE_ENTRIES)
		cache->user[i].is_bare = !s->runtime.nr_frames && !s->runtime.record.stop && !s->runtimes_left;
	cache->fresh = 0;
}
