/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stack_cache: the last walks of a thread, with what decided them. Threads wait at the same locations with the same stacks again and again.
 * A walk is decided by the registers it uses and the words of the stack it reads. While these and the process's mappings are unchanged, so
 * is its result; they are compared before the next walk. Compiles for BPF and for the host, like walk/unwind.h, whose walk records what it
 * reads where walk_is_recorded. Not cached: walks that read code or a signal's registers, and walks that end early. Cached all the
 * same: walks that end because user space has not provided enough yet. They are valid until it provides more. */
#pragma once
#include "unwind.h"

#define STACK_CACHE_ENTRIES 2 /* per thread: where it blocks, and where it is preempted just before */

struct stack_cache {
	__u64 hash;       /* of the walk's result; 0: empty */
	__u64 hash_begin; /* of the process */
	__u64 pc, sp, bp;
	__u64 tls_base;   /* 0: not used */
	__u32 serial;     /* of the process's mappings */
	__u32 used_regs;  /* a bit for each of regs that was used */
	__u32 nr_words;
	__u32 near_bytes; /* from the first word to behind the last, if one read can get them all; else 0 */
	__u32 generation; /* of the process; 0: not known */
	__u32 table_generation, exec; /* when the process was last checked: while both are the same, so is the process */
	__u16 nr_frames;
	__u8 stop;
	__u8 is_bare;     /* no interpreter had frames here, so none has the next time */
	__u64 regs[WALK_NR_REGS];
	__u64 at[WALK_TRAIL_WORDS], words[WALK_TRAIL_WORDS];
};

/* Could the walk, at its start with its process known, be the cached one? */
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

/* Reads the words to compare, if they are close enough for one read. */
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

/* Are the words unchanged? A word that is not aligned like the others is not compared: the stack is walked. */
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

/* stack_cache_same for words that were read at once. */
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

/* The distance in bytes from the first word to behind the last, if all can be read at once; else 0. By arithmetic, as in at_most. */
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

/* Caches the walk that has just ended, if possible. `start`: the registers that it began with. */
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
	cached->is_bare = 0; /* set by the code that checks the interpreters */
	cached->hash = hash;
}
