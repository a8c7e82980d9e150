/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long a walk may take. It is an interrupt's, or holds the run queue's lock, and a stranger's stack may make each of its steps as long as steps can be. */
#pragma once
#include "unwind.h"

/* Is it time to read the clock? Frames with rows take 20 ns, and there are so many at most: a slow processor is to have all of them. */
static __always_inline int walk_asks_clock(const struct walk *w)
{
	return w->nr_looks >= w->clock_looks;
}

/* It is: has the walk had its time? */
static __always_inline int walk_is_late(struct walk *w, __u64 now_ns)
{
	w->clock_looks = w->nr_looks + WALK_CLOCK_LOOKS;
	if (!w->clock_ns)
		w->clock_ns = now_ns;
	return now_ns - w->clock_ns > WALK_MAX_NS;
}
