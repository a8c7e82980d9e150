/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk_frame_pointer: the walk where there is no row: by what the code says, and by the chain of saved frame pointers. */
#pragma once
#include "walk_arch.h"

#define WALK_MAX_ARGUMENTS 4096
#define WALK_MAX_ARGUMENT_BYTES (4u << 20)
#define WALK_MAX_AUXV_TYPE 63

/* Is sp as at a process's start (psABI section 3.4.1: argc, the arguments, 0, the environment)? Then there is no caller. The kernel puts
 * the strings above it in order: the environment begins behind the NUL of the last argument. */
WALK_FUNCTION int walk_is_entry(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u64 argc, next[3], first; /* the last argument, 0, and the environment's first string */
	__u8 end = 1;

	if (!w || walk_peek(w, w->sp, &argc) || !argc || argc > WALK_MAX_ARGUMENTS)
		return 0;
	if (walk_peek(w, w->sp + 8, &first) || read_user(w, next, sizeof(next), w->sp + 8 * argc) || next[1])
		return 0;
	if (first - w->sp > WALK_MAX_ARGUMENT_BYTES || next[0] < first || next[0] - w->sp > WALK_MAX_ARGUMENT_BYTES)
		return 0;
	if (!next[2]) /* no environment: the auxiliary vector's first type follows */
		return !walk_peek(w, w->sp + 8 * argc + 24, &first) && first && first <= WALK_MAX_AUXV_TYPE;
	if (next[2] <= next[0] || next[2] - w->sp > WALK_MAX_ARGUMENT_BYTES)
		return 0;
	return read_user(w, &end, 1, next[2] - 1) || !end; /* may already be unmapped if the stack is walked late */
}

#define WALK_LINK (1ULL << 62) /* cache key: a return address with this bit holds the result of walk_link_of */

/* The frame at w->pc is in a gap of a file that has rows. Can it be the frame that `ret` called, and be linked by its frame pointer? If
 * not, `ret` is what a caller left there, and frames in between would be skipped. */
static __always_inline int walk_is_link(struct walk *w, __u64 ret)
{
	__u64 key = ret | SONDE_FRAME_RETURN | WALK_LINK, link;
	struct walk_cached *cached = walk_cached(w, key);

	if (cached->frame != key || cached->serial != w->serial) {
		link = walk_link_of(ref_of(w), ret);
		if (link == WALK_LINK_NONE)
			return 0;
		if (is_fixed(w, ret | SONDE_FRAME_RETURN)) {
			cached->frame = key;
			cached->serial = w->serial;
			cached->rule = (__u32)link;
		}
	} else {
		link = cached->rule;
	}
	return link == WALK_LINK_ANY || (__u32)w->pc - (__u32)link < WALK_MAX_LEAF_BYTES;
}

#define WALK_FEW_WORDS 16
#define WALK_MAX_SKIPPED_BYTES (8 * WALK_FEW_WORDS * 8)

/* May the word on the stack be the return address of the function at pc, which then has not set its frame pointer? `linked`: distance from
 * the start of the function that pc is in according to the frame pointer. A function that begins nearer to pc, or at an unknown address, is
 * possible too. */
WALK_FUNCTION int walk_may_return(WALK_REF ref, __u64 at, __u32 linked)
{
	struct walk *w = walk_of(ref);
	__u64 word, link;
	__u32 distance;

	if (w)
		w->nr_looks++;
	if (!w || walk_peek(w, at, &word) || walk_find_mapping(w, word - 1) ||
	    !walk_after_call(ref_of(w), word)) /* not walk_is_return: 5.10 to 6.18 allow 8 frames */
		return 0;
	distance = walk_called_distance(ref_of(w), word, w->pc);
	if (distance == WALK_MAX_LEAF_BYTES)
		return linked == WALK_MAX_LEAF_BYTES;
	link = walk_link_of(ref_of(w), word);
	/* else the function has set it, and the word was left by an earlier call */
	return distance <= linked && (link == WALK_LINK_ANY || link == WALK_LINK_NONE);
}

/* walk_may_return for the words from `at` on, below the frame pointer. */
WALK_FUNCTION int walk_few_may_return(WALK_REF ref, __u64 at, __u32 linked)
{
	struct walk *w = walk_of(ref);

	for (__u32 i = 0; w && i < WALK_FEW_WORDS; i++) {
		if (at + i * 8 < w->bp && walk_may_return(ref_of(w), at + i * 8, linked))
			return 1;
	}
	return 0;
}

/* A frame pointer that the current function has not set belongs to an older function: the calls since then would be skipped. The function's
 * own return address is then below it. */
WALK_FUNCTION int walk_skips(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u64 ret;
	__u32 linked;

	if (!w || walk_peek(w, w->bp + 8, &ret))
		return 0;
	linked = walk_called_distance(ref_of(w), ret, w->pc);
	for (__u32 off = 0; off < WALK_MAX_SKIPPED_BYTES && w->sp + off < w->bp; off += WALK_FEW_WORDS * 8) {
		if (walk_few_may_return(ref_of(w), w->sp + off, linked))
			return 1;
	}
	return 0;
}

#define WALK_ON 8          /* from walk_begin_link: continue with the chain of saved frame pointers */
#define WALK_ON_IS_SURE 9 /* and the emulated code says that the frame is a link of it */

/* The first part of the walk where there is no row: what the code says comes before the chain of saved frame pointers (walk_link). Two
 * functions, because the programs' functions share 512 bytes of stack. */
WALK_FUNCTION int walk_begin_link(WALK_REF ref, int is_trusted)
{
	struct walk *w = walk_of(ref);
	int frameless = 0, emulation = EMULATE_UNKNOWN;

	if (!w)
		return WALK_ENDED;
	if (w->follows_bx) /* frames without rules do not say where they save it */
		w->follows_bx = WALK_BX_LOST;
	if (!w->bp && walk_is_entry(ref_of(w)))
		return walk_stop(w, SONDE_STOP_COMPLETE);
	emulation = walk_emulate(w);
	if (emulation == EMULATE_MOVED)
		return WALK_GOES_ON;
	if (emulation == EMULATE_WRONG)
		return walk_stop(w, SONDE_STOP_NO_ROW);
	if (w->exact && emulation != EMULATE_LINKED)
		frameless = walk_frameless(ref_of(w));
	if (frameless)
		return frameless == WALK_FRAMELESS ? WALK_GOES_ON : walk_stop(w, SONDE_STOP_NO_ROW);
	if (is_trusted && !w->exact && !is_linked(w) && walk_returns_at_once(ref_of(w)))
		return WALK_GOES_ON;
	if (!w->bp && is_linked(w) && walk_is_outermost(ref_of(w))) /* the ABI's mark of the outermost frame; elsewhere rbp is arbitrary */
		return walk_stop(w, SONDE_STOP_COMPLETE);
	return emulation == EMULATE_LINKED ? WALK_ON_IS_SURE : WALK_ON;
}

/* Follows the chain of saved frame pointers and checks each link. */
WALK_FUNCTION int walk_link(WALK_REF ref, int is_trusted, int is_sure)
{
	struct walk *w = walk_of(ref);
	struct walk_cached *cached;
	__u64 bp, pc, frame;

	if (!w)
		return WALK_ENDED;
	if (w->bp & 7 || w->bp < w->sp || w->bp - w->sp > WALK_MAX_FP_FRAME_BYTES)
		return walk_stop(w, SONDE_STOP_NO_ROW);
	if (walk_peek(w, w->bp, &bp) || walk_peek(w, w->bp + 8, &pc))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	pc = code_pc(pc);
	if (!pc)
		return walk_stop(w, is_linked(w) && (is_sure || walk_is_outermost(ref_of(w))) ? SONDE_STOP_COMPLETE : SONDE_STOP_NO_ROW);
	frame = pc | SONDE_FRAME_RETURN;
	cached = walk_cached(w, frame);
	/* else it was a return address before, and still is */
	if (cached->frame != frame || cached->serial != w->serial || cached->rule >= SONDE_MAX_RULES) {
		if (!walk_is_return(ref_of(w), pc))
			return walk_stop(w, SONDE_STOP_NO_ROW);
	}
	if ((!is_trusted && !walk_is_link(w, pc)) || (!is_sure && walk_skips(ref_of(w))))
		return walk_stop(w, SONDE_STOP_NO_ROW);
	w->sp = w->bp + 16;
	w->bp = bp;
	w->pc = pc;
	w->exact = 0;
	w->linked_frame = w->nr_frames;
	if (!WALK_SP_KNOWN)
		w->lost_sp_frame = w->nr_frames;
	return WALK_GOES_ON;
}

/* `is_trusted`: the code there has no rows at all, so something else must find its callers, which can only be the frame pointer. In a gap
 * of a file with rows it is only a guess, unless the call shows that the function keeps it. */
static __always_inline int walk_frame_pointer(struct walk *w, int is_trusted)
{
	int begun;

	walk_note_lost(w); /* code decides, so the walk cannot be cached */
	if (w->nr_looks >= WALK_MAX_LOOKS)
		return walk_stop(w, SONDE_STOP_TOO_LONG);
	if (walk_is_sigreturn(ref_of(w)))
		return walk_signal(ref_of(w));
	begun = walk_begin_link(ref_of(w), is_trusted);
	return begun < WALK_ON ? begun : walk_link(ref_of(w), is_trusted, begun == WALK_ON_IS_SURE);
}
