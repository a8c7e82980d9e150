/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk_memory: reads the thread's stack in blocks. */
#pragma once
#include "walk_state.h"

/* Reads a block that starts at `from`. If it crosses into a page that is not there (the top of the stack), reads up to the page's end. */
WALK_FUNCTION int walk_fill(WALK_REF ref, __u64 from)
{
	struct walk *w = walk_of(ref);
	__u32 size = WALK_BLOCK_BYTES;

	if (!w)
		return -1;
	w->block_limit = 0;
	if (read_user(w, w->block, WALK_BLOCK_BYTES, from)) {
		size = WALK_PAGE_BYTES - (from & (WALK_PAGE_BYTES - 1));
		if (size < 8 || size >= WALK_BLOCK_BYTES)
			return -1;
		size &= WALK_BLOCK_BYTES - 1; /* for the verifier */
		if (read_user(w, w->block, size, from))
			return -1;
	}
	w->block_start = from;
	w->block_limit = size - 7;
	return 0;
}

/* Finds the offset of a stack word in the block; reads a new block if it is not there. 0 or -1. */
static __always_inline int walk_locate(struct walk *w, __u64 at, __u64 *ret_off)
{
	*ret_off = at - w->block_start;
	if (*ret_off < w->block_limit)
		return 0;
	*ret_off = 0;
	return walk_fill(ref_of(w), at);
}

static __always_inline __u64 walk_located(const struct walk *w, __u64 off)
{
	return w->block[off / 8 & (WALK_BLOCK_BYTES / 8 - 1)];
}

/* A word of the stack. 0 or -1. */
static __always_inline int walk_peek(struct walk *w, __u64 at, __u64 *ret_word)
{
	__u64 off;

	if (walk_locate(w, at, &off))
		return -1;
	if (off & 7) { /* an unaligned stack: rare, so read the word by itself */
		walk_note_lost(w);
		return read_user(w, ret_word, sizeof(*ret_word), at) ? -1 : 0;
	}
	*ret_word = walk_located(w, off);
	return 0;
}

/* walk_peek for a word that decides where the caller is: records it for the stack cache. */
static __always_inline int walk_word(struct walk *w, __u64 at, __u64 *ret_word)
{
	if (walk_peek(w, at, ret_word))
		return -1;
	walk_note_word(w, at, *ret_word);
	return 0;
}
