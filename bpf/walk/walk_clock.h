/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long the walks of one event may take together, the native one and those of the interpreters. They are an interrupt's, or hold the run
 * queue's lock, and a stranger's stack may make each of their steps as long as steps can be. So the clock is read when a walk has cost
 * much, by what it did: ordinary ones do not come to that, and a slow processor (an emulated one) has all frames of those that do not. */
#pragma once
#include "unwind.h"

#define WALK_MAX_NS 650000     /* from the event on */
#define WALK_ALL_NS 800000     /* likewise, with what interpreters run */
#define WALK_MORE_NS 350000    /* likewise: behind a longer walk there is no long copy of the stack, and no labels */
#define WALK_READ_LOOKS \
	2 /* a read of user memory counts as so many: 0.1 us, or 0.5 where a page is not there. 10,000 frames of 32 bytes do not come to \
	     the clock */

static __always_inline __u32 walk_cost(const struct walk *w)
{
	return w->nr_looks + w->nr_reads * WALK_READ_LOOKS;
}

/* Is it time to read the clock? */
static __always_inline int walk_asks_clock(const struct walk *w)
{
	return walk_cost(w) >= w->clock_cost;
}

/* It is: have the walks had so much time? */
static __always_inline int walk_is_late(struct walk *w, __u64 now_ns, __u64 max_ns)
{
	w->clock_cost = walk_cost(w) + WALK_CLOCK_COST / 2;
	return now_ns - w->event_ns > max_ns;
}

#ifdef WALK_BY_NUMBER /* the kernel's walk */
/* Has a walk that cost much taken so long? */
static __always_inline bool was_walk_slow(const struct walk *w, __u64 max_ns)
{
	return walk_cost(w) >= WALK_CLOCK_COST && bpf_ktime_get_ns() - w->event_ns > max_ns;
}
#endif
