/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* walk_clock: the time limit for all walks of one event, native and interpreters. They run in an interrupt or hold the run queue's lock,
 * and an untrusted program's stack may make each step as slow as possible. So the clock is read once a walk has cost much, counted by what
 * it did. Ordinary walks do not cost that much: on a slow (emulated) processor they still get all their frames. */
#pragma once
#include "unwind.h"

#define WALK_MAX_NS 650000     /* since the event */
#define WALK_ALL_NS 800000     /* likewise, including the interpreters' walks */
#define WALK_MORE_NS 350000    /* likewise: after a longer walk there is no long copy of the stack, and no labels */
/* Looks that a read of user memory counts as: 0.1 us, or 0.5 us where a page is not there. 10,000 frames of 32 bytes do not reach the
 * clock. */
#define WALK_READ_LOOKS 2

static __always_inline __u32 walk_cost(const struct walk *w)
{
	return w->nr_looks + w->nr_reads * WALK_READ_LOOKS;
}

/* Is it time to read the clock? */
static __always_inline int walk_asks_clock(const struct walk *w)
{
	return walk_cost(w) >= w->clock_cost;
}

/* The clock was read: have the walks used up their time? */
static __always_inline int walk_is_late(struct walk *w, __u64 now_ns, __u64 max_ns)
{
	w->clock_cost = walk_cost(w) + WALK_CLOCK_COST / 2;
	return now_ns - w->event_ns > max_ns;
}

#ifdef WALK_BY_NUMBER /* the kernel's walk */
/* Did the walk cost much and take longer than max_ns? */
static __always_inline bool was_walk_slow(const struct walk *w, __u64 max_ns)
{
	return walk_cost(w) >= WALK_CLOCK_COST && bpf_ktime_get_ns() - w->event_ns > max_ns;
}
#endif
