/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* unwind.h's part for what is found in the place of a return address and is none. */
#pragma once
#include "walk_table.h"

#ifndef WALK_PUT_ASIDE
#define user_return(w) 0
#endif

/* The current frame is no caller: the one before it is the outermost; unless the kernel has put the return address aside for a uretprobe,
 * and one in a page of its own stands there. */
WALK_FUNCTION int walk_no_caller(WALK_REF ref, __u32 number)
{
	struct walk *w = walk_of(ref);
	__u64 pc;

	if (!w)
		return WALK_ENDED;
	if (number != WALK_NO_MAPPING) {
		w->nr_frames--;
		return walk_stop(w, number == WALK_ROOT ? SONDE_STOP_COMPLETE : SONDE_STOP_NO_CALL);
	}
	if (w->exact)
		return walk_stop(w, SONDE_STOP_NO_MAPPING);
	w->nr_frames--; /* what leads to no code was no return address */
	pc = user_return(w);
	if (!pc)
		return walk_stop(w, SONDE_STOP_NO_MAPPING);
	w->pc = pc;
	walk_note_lost(w);
	return WALK_GOES_ON;
}
