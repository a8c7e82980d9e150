/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk_table: what to do at a frame: its mapping, the row of its pc, and the cache of both. */
#pragma once
#include "walk_memory.h"

#define CHUNK_WORD(words, pos) ((words)[(pos) & (SONDE_CHUNK_WORDS - 1)])
#define CHUNK_U64(words, pos) (*(const __u64 *)&(words)[(pos) & (SONDE_CHUNK_WORDS - 2)]) /* at even pos */

/* Binary searches without branches: the verifier sees a single path, and the CPU cannot mispredict. All ones when a <= b, for a and b below
 * 2^63. */
static __always_inline __u64 at_most(__u64 a, __u64 b)
{
	return (__u64)((__s64)(a - b - 1) >> 63);
}

/* Number of the process's mappings that start at or before `pc`. */
WALK_FUNCTION __u32 walk_search_mappings(WALK_REF ref, __u64 pc)
{
	struct walk *w = walk_of(ref);
	__u32 base = 0, pos, nr;
	const __u32 *words;

	if (!w)
		return 0;
	pos = w->process_pos;
	nr = w->nr_mappings;
	words = chunk_at(w, pos);
	if (!words)
		return 0;
	for (int step = 0; step < 13 && nr > 1; step++) { /* 2^13 > SONDE_MAX_MAPPINGS */
		__u32 half = nr / 2;

		base += half & (__u32)at_most(CHUNK_U64(words, pos + (base + half - 1) * 8), pc);
		nr -= half;
	}
	return base + (nr & (__u32)at_most(CHUNK_U64(words, pos + base * 8), pc));
}

/* Sets w->mapping to the one that contains `pc`. 0, or -1: there is none. */
static __always_inline int walk_find_mapping(struct walk *w, __u64 pc)
{
	const __u32 *words;
	__u32 nr_before, at;

	if (pc - w->mapping.start_pc < w->mapping.end_pc - w->mapping.start_pc)
		return 0;
	nr_before = walk_search_mappings(ref_of(w), pc);
	words = chunk_at(w, w->process_pos);
	at = w->process_pos + (nr_before - 1) * 8;
	if (!nr_before || !words || pc >= CHUNK_U64(words, at + 2))
		return -1;
	w->mapping.start_pc = CHUNK_U64(words, at);
	w->mapping.end_pc = CHUNK_U64(words, at + 2);
	w->mapping.base_pc = CHUNK_U64(words, at + 4);
	w->mapping.index_pos = CHUNK_WORD(words, at + 6);
	w->mapping.nr_blocks = CHUNK_WORD(words, at + 7);
	w->mapping.block_shift = CHUNK_WORD(words, at + 7) >> 16;
	return 0;
}

/* Number of the rule at `rel` of the current mapping. SONDE_RULE_NONE: no row covers it. */
static __always_inline __u32 walk_find_rule(struct walk *w, __u64 rel)
{
	__u64 block = rel >> (w->mapping.block_shift & 31), entry;
	__u32 low = rel & ((1u << (w->mapping.block_shift & 31)) - 1), first, nr;
	const __u32 *words = chunk_at(w, w->mapping.index_pos);

	if (!words || block >= w->mapping.nr_blocks)
		return SONDE_RULE_NONE;
	entry = CHUNK_U64(words, w->mapping.index_pos + block * 2); /* a struct sonde_block */
	first = entry;
	nr = entry >> 32;
	words = chunk_at(w, first);
	if (!words)
		return SONDE_RULE_NONE;
	for (int step = 0; step < 16 && nr > 1; step++) { /* at most one row per address of the largest block */
		__u32 half = nr / 2;

		first += half & (__u32)at_most(CHUNK_WORD(words, first + half) & 0xffff, low);
		nr -= half;
	}
	return CHUNK_WORD(words, first) >> 16;
}

static __always_inline struct walk_cached *walk_cached(struct walk *w, __u64 frame)
{
	return &w->cache[(frame * 0x9e3779b97f4a7c15ULL) >> (64 - WALK_CACHE_SHIFT)];
}

/* Number of the rule at pc, or a WALK_* value instead. */
WALK_FUNCTION __u32 walk_find(WALK_REF ref, __u64 pc)
{
	struct walk *w = walk_of(ref);

	if (!w || walk_find_mapping(w, pc))
		return WALK_NO_MAPPING;
	if (w->mapping.nr_blocks)
		return walk_find_rule(w, pc - w->mapping.base_pc);
	if (w->mapping.block_shift == SONDE_COMPILED)
		return WALK_COMPILED + (w->mapping.index_pos & (SONDE_MAX_RULES - 1));
	if (w->mapping.block_shift == SONDE_OWNED)
		return WALK_OWNED + (w->mapping.index_pos & (SONDE_MAX_RULES - 1));
	return w->mapping.block_shift == SONDE_NOT_LOADED ? WALK_NOT_LOADED : WALK_NO_TABLE;
}

WALK_FUNCTION int walk_after_call(WALK_REF ref, __u64 pc);
WALK_FUNCTION int walk_is_sigreturn(WALK_REF ref);
WALK_FUNCTION int walk_ends_process(WALK_REF ref);

/* What to do at w->pc, a return address with no call before it; `found` is the rule before it. Rules may end stacks and leave signal
 * handlers without a call. A stack that was set up by hand begins with the address of code that ends the process (makecontext's
 * __start_context). Anything else is a leftover word. */
static __always_inline __u32 walk_uncalled(struct walk *w, __u32 found)
{
	const struct sonde_rule *rule = found < SONDE_MAX_RULES ? rule_at(w, found) : 0;
	__u64 code;

	if (rule && (rule->kind == SONDE_RULE_KIND_END || rule->kind == SONDE_RULE_KIND_SIGNAL))
		return found;
	if (read_user(w, &code, sizeof(code), w->pc - sizeof(code))) /* then nothing is proved */
		return WALK_UNPROVED | found;
	if (walk_is_sigreturn(ref_of(w)))
		return found;
	return walk_ends_process(ref_of(w)) ? WALK_ROOT : WALK_NO_CALL;
}

/* Finds what to do at a frame that is not in the cache, and caches it. */
WALK_FUNCTION __u32 walk_search(WALK_REF ref, __u64 frame)
{
	struct walk *w = walk_of(ref);
	__u64 pc = frame & ~SONDE_FRAME_RETURN;
	__u32 is_return = frame >> 63, rule; /* the return address may be the first byte of the next function */
	struct walk_cached *cached;

	if (!w)
		return WALK_NO_MAPPING;
	rule = walk_find(ref_of(w), pc - is_return);
	if (rule == WALK_NO_MAPPING)
		return rule;
	/* A runtime may push return addresses itself: its own program tells which are some. */
	if (is_return && rule < WALK_OWNED && !walk_after_call(ref_of(w), pc))
		rule = walk_uncalled(w, rule);
	if (rule & WALK_UNPROVED)
		return rule & ~WALK_UNPROVED;
	cached = walk_cached(w, frame);
	cached->frame = frame;
	cached->serial = w->serial;
	cached->rule = rule;
	return rule;
}

static __always_inline __u32 walk_lookup(struct walk *w, __u64 frame)
{
	struct walk_cached *cached = walk_cached(w, frame);

	return cached->frame == frame && cached->serial == w->serial ? cached->rule : walk_search(ref_of(w), frame);
}

/* Is the frame in a file that has rows? Its code is not written to. */
static __always_inline int is_fixed(struct walk *w, __u64 frame)
{
	struct walk_cached *cached = walk_cached(w, frame);
	__u32 rule = cached->rule;

	if (cached->frame != frame || cached->serial != w->serial)
		rule = walk_find(ref_of(w), (frame & ~SONDE_FRAME_RETURN) - (frame >> 63));
	return rule < SONDE_MAX_RULES;
}
