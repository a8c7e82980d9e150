/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads wait at the same places with the same stacks, again and again. A walk is decided by the registers that it looks at and by the
 * words of the stack that it reads: while these are the same, and the process's mappings are, its result is. So what decided the last walks
 * of a thread is kept with it, and compared before the next one. Compiles for BPF and for the host, as walk/unwind.h does, whose walk
 * writes down what it reads where WALK_REMEMBERS is defined. Walks that look at code or at a signal's registers are not remembered, nor are
 * those that end before the stack does, unless it is user space that has not told enough yet: that they do so is true until it tells more.
 */
#pragma once
#include "unwind.h"

#define STACK_CACHE_ENTRIES 2 /* of a thread: where it blocks, and where it is preempted just before */

struct stack_cache {
	__u64 hash;       /* what the walk gave; 0: nothing is remembered */
	__u64 hash_begin; /* of the process */
	__u64 pc, sp, bp;
	__u64 tls_base;   /* 0: it was not asked for */
	__u32 serial;     /* of the process's mappings */
	__u32 used_regs;  /* a bit for each of regs that was looked at */
	__u32 nr_words;
	__u32 near_bytes; /* from the first word to behind the last, where that can be read at once; else 0 */
	__u32 generation; /* of the process; 0: not known */
	__u32 table_generation, exec; /* when the process was last seen to be as it was then: while both are the same, it still is */
	__u16 nr_frames;
	__u8 stop;
	__u8 is_bare;     /* no interpreter had frames among these: then none has them the next time */
	__u64 regs[WALK_NR_REGS];
	__u64 at[WALK_TRAIL_WORDS], words[WALK_TRAIL_WORDS];
};

/* Could the walk, which stands at its begin with its process known, be the one that is remembered? */
static __always_inline int stack_cache_fits(const struct stack_cache *cached, const struct walk *w)
{
	__u64 differs = 0;

	if (!cached->hash || !cached->is_bare || cached->stop != SONDE_STOP_COMPLETE || cached->pc != w->pc || cached->sp != w->sp ||
	    cached->bp != w->bp)
		return 0;
	if (cached->hash_begin != w->hash_begin || cached->serial != w->serial || !w->process_pos || w->compat)
		return 0;
	for (int i = 0; i < WALK_NR_REGS; i++)
		differs |= (cached->regs[i] ^ w->regs[i]) & -(__u64)(cached->used_regs >> i & 1);
	return !differs && (!cached->tls_base || cached->tls_base == user_tls_base(w));
}

/* Reads what will be compared, where that is short enough to be read at once. */
static __always_inline void stack_cache_fetch(const struct stack_cache *cached, struct walk *w)
{
	__u64 low = cached->sp - SONDE_RED_ZONE_BYTES, size;

	w->block_limit = 0;
	if (!cached->nr_words)
		return;
	size = cached->at[(cached->nr_words - 1) & (WALK_TRAIL_WORDS - 1)] + 8 - low;
	if (size < 8 || size > WALK_BLOCK_BYTES)
		return;
	if (read_user(w, w->block, size, low))
		return;
	w->block_start = low;
	w->block_limit = size - 7;
}

/* Do the words stand where they stood? One that is not aligned as others are is not compared: such a stack is walked. */
static __always_inline int stack_cache_same(const struct stack_cache *cached, struct walk *w)
{
#ifdef __clang__
#pragma clang loop unroll(disable)
#endif
	for (__u32 i = 0; i < WALK_TRAIL_WORDS && i < cached->nr_words; i++) {
		__u64 off;

		if (walk_locate(w, cached->at[i & (WALK_TRAIL_WORDS - 1)], &off) || off & 7 ||
		    walk_located(w, off) != cached->words[i & (WALK_TRAIL_WORDS - 1)])
			return 0;
	}
	return 1;
}

/* The same, of words that were read at once. */
static __always_inline int stack_cache_same_near(const struct stack_cache *cached, struct walk *w)
{
	__u64 differs = 0;

#ifdef __clang__
#pragma clang loop unroll(disable)
#endif
	for (__u32 i = 0; i < WALK_TRAIL_WORDS && i < cached->nr_words; i++)
		differs |= w->block[(cached->at[i] - cached->at[0]) / 8 & (WALK_BLOCK_BYTES / 8 - 1)] ^ cached->words[i];
	return !differs;
}

/* How many bytes the words lie apart, if all can be read at once, from the first to behind the last; else 0. By arithmetic, as in at_most.
 */
static __always_inline __u32 stack_cache_near(const struct stack_cache *cached)
{
	__u64 last = cached->at[(cached->nr_words - 1) & (WALK_TRAIL_WORDS - 1)] - cached->at[0], off, wrong = 0;

	if (!cached->nr_words || last > WALK_BLOCK_BYTES - 8)
		return 0;
#ifdef __clang__
#pragma clang loop unroll(disable)
#endif
	for (__u32 i = 0; i < WALK_TRAIL_WORDS && i < cached->nr_words; i++) {
		off = cached->at[i] - cached->at[0];
		wrong |= (off & 7) | off >> 63 | (last - off) >> 63;
	}
	return wrong ? 0 : last + 8;
}

/* Keeps the walk that has just ended, if it can be kept. `start`: the registers that it began with. */
static __always_inline void stack_cache_keep(struct stack_cache *cached, const struct walk *w, const __u64 *start, __u64 hash)
{
	cached->hash = 0;
	if (w->trail.is_lost || w->nr_frames > SONDE_LEAF_FRAMES || w->compat || (w->stop != SONDE_STOP_COMPLETE && !is_early(w->stop)))
		return;
	cached->hash_begin = w->hash_begin;
	cached->generation = w->generation;
	cached->serial = w->serial;
	cached->pc = start[SONDE_REG_PC];
	cached->sp = start[WALK_REG_SP];
	cached->bp = start[WALK_REG_BP];
	cached->tls_base = w->trail.tls_base;
	cached->used_regs = w->trail.used_regs;
	cached->nr_words = w->trail.nr;
	cached->nr_frames = w->nr_frames;
	cached->stop = w->stop;
	for (int i = 0; i < WALK_NR_REGS; i++)
		cached->regs[i] = start[i];
	for (__u32 i = 0; i < WALK_TRAIL_WORDS && i < w->trail.nr; i++) {
		cached->at[i] = w->trail.at[i];
		cached->words[i] = w->trail.words[i];
	}
	cached->near_bytes = stack_cache_near(cached);
	cached->is_bare = 0; /* whoever asks the interpreters says so */
	cached->hash = hash;
}
