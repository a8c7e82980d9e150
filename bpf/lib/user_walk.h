/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The user stack of the current thread, as all triggers take it: walked by native steps, up to code of a runtime. */
#pragma once
#include "stack.h"

static __always_inline int walk_turn(struct scratch *s)
{
	return walk_step(&s->walk, s->stack.frames);
}
#include "walk_loop.h"

/* False: the walk has come to code of a runtime, or to a gap that it may know more of: its program goes on, and ends it (next_runtime). */
static __always_inline bool walk_user(struct scratch *s)
{
	walk_all(s->walk.number);
	if (!s->walk.owner && s->walk.runtimes & SONDE_RUNTIMES_THAT_BRIDGE && walk_is_broken(&s->walk)) {
		walk_note_lost(&s->walk);
		s->walk.owner = SONDE_RUNTIME_BRIDGE;
		s->walk.at_gap = 1;
	}
	return !s->walk.owner;
}

/* Takes the stack. The walk has its registers and its process. */
static __always_inline void take_user_stack(struct scratch *s, struct sonde_counters *count, retry_fn retry)
{
	walk_enter(&s->walk);
	if (walk_user(s))
		end_user_stack(s, count, retry);
}
