/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where no row stands: what the code says, and the chain of saved frame pointers. A part of unwind.h. */
#pragma once

#define WALK_ON 8          /* from walk_begin_link: the chain of saved frame pointers is to be gone on with */
#define WALK_ON_IS_SURE 9 /* and the code ahead says that the frame has its place in it */

/* Where no row stands. What the code there says comes before the chain of saved frame pointers: walk_link. In two parts, for the 512 bytes of stack that the programs' functions have together. */
WALK_FUNCTION int walk_begin_link(WALK_REF ref, int is_trusted)
{
	struct walk *w = walk_of(ref);
	int frameless = 0, ahead = AHEAD_UNKNOWN;

	if (!w)
		return WALK_ENDED;
	if (w->follows_bx) /* frames without rules do not say where they keep it */
		w->follows_bx = WALK_BX_LOST;
	if (!w->bp && walk_is_entry(ref_of(w)))
		return walk_stop(w, SONDE_STOP_COMPLETE);
	ahead = walk_ahead(w);
	if (ahead == AHEAD_MOVED)
		return WALK_GOES_ON;
	if (ahead == AHEAD_WRONG)
		return walk_stop(w, SONDE_STOP_NO_ROW);
	if (w->exact && ahead != AHEAD_LINKED)
		frameless = walk_frameless(ref_of(w));
	if (frameless)
		return frameless == WALK_FRAMELESS ? WALK_GOES_ON : walk_stop(w, SONDE_STOP_NO_ROW);
	if (is_trusted && !w->exact && !is_linked(w) && walk_returns_at_once(ref_of(w)))
		return WALK_GOES_ON;
	if (!w->bp && is_linked(w) && walk_is_outermost(ref_of(w))) /* the ABI's mark of that frame; elsewhere rbp may be any number */
		return walk_stop(w, SONDE_STOP_COMPLETE);
	return ahead == AHEAD_LINKED ? WALK_ON_IS_SURE : WALK_ON;
}

/* The chain of saved frame pointers, each link checked. */
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
	if (cached->frame != frame || cached->serial != w->serial || cached->rule >= SONDE_MAX_RULES) { /* else it was a return address before, and still is */
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

/* `is_trusted`: all of the code there is without rows, so it has another way to find its callers, which can only be the frame pointer. In a gap of a file with rows it is but a guess, unless the call says that
 * the function keeps it. */
static __always_inline int walk_frame_pointer(struct walk *w, int is_trusted)
{
	int begun;

	walk_note_lost(w); /* code decides */
	if (w->nr_looks >= WALK_MAX_LOOKS)
		return walk_stop(w, SONDE_STOP_TOO_LONG);
	if (walk_is_sigreturn(ref_of(w)))
		return walk_signal(ref_of(w));
	begun = walk_begin_link(ref_of(w), is_trusted);
	return begun < WALK_ON ? begun : walk_link(ref_of(w), is_trusted, begun == WALK_ON_IS_SURE);
}
