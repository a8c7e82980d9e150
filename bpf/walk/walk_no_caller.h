/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk_no_caller: the part of unwind.h for a word in a return address's slot that is not a return address. */
#pragma once
#include "walk_table.h"

#ifndef WALK_PUT_ASIDE
#define user_return(w) 0
#endif

/* The current frame is not a caller, so the one before it is the outermost. Exception: the kernel has replaced the return address for a
 * uretprobe by one in a page of its own. */
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
	w->nr_frames--; /* it leads to no code, so it was not a return address */
	pc = user_return(w);
	if (!pc)
		return walk_stop(w, SONDE_STOP_NO_MAPPING);
	w->pc = pc;
	walk_note_lost(w);
	return WALK_GOES_ON;
}
