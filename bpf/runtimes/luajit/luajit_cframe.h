/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* luajit_cframe: the C frames of the interpreter's activations (CFRAME_*, lj_frame.h). */
#pragma once
#include "luajit_stack.h"

/* Words of the C frame. */
#define LUAJIT_C_RESULTS 1 /* the low half */
#define LUAJIT_C_STATE 2
#define LUAJIT_C_PC 3
#define LUAJIT_C_PREVIOUS 4
#define LUAJIT_C_BP 8
#define LUAJIT_C_RETURN 9
#define LUAJIT_C_FLAGS 3ULL
/* A trace takes up to 1,024 bytes and 16; its exit handler saves 32 registers. */
#define LUAJIT_FAR_FEWS 22
#define LUAJIT_FAR_FEW 8

/* Is `at` the innermost C frame of the state that it names, or the next one of the last run's? Reads both. */
WALK_FUNCTION int luajit_is_cframe(WALK_REF ref, __u64 at)
{
	struct walk *w = walk_of(ref);
	struct runtime_walk *r = runtime_walk_of(ref);
	__u64 state;

	if (!w || !r || walk_peek(w, at + 8 * LUAJIT_C_STATE, &state) || state & 7 || state < WALK_PAGE_BYTES ||
	    state >> LUAJIT_TAG_SHIFT ||
	    read_user(w, &r->buffer[LUAJIT_THREAD], LUAJIT_THREAD_BYTES, state) ||
	    luajit_byte(r->buffer[LUAJIT_THREAD + 1], 1) != LUAJIT_IS_THREAD ||
	    read_user(w, &r->buffer[LUAJIT_C_FRAME], LUAJIT_C_BYTES, at))
		return 0;
	if (state == r->state[LUAJIT_L])
		return at == r->state[LUAJIT_CFRAME];
	if (at != (r->buffer[LUAJIT_THREAD_CFRAME] & ~LUAJIT_C_FLAGS))
		return 0;
	r->state[LUAJIT_L] = state;
	r->state[LUAJIT_CFRAME] = at;
	r->state[LUAJIT_BASE] = 0;
	return 1;
}

/* The C frame among a few words, from `at` on; 0: none. */
WALK_FUNCTION __u64 luajit_search(WALK_REF ref, __u64 at, int nr)
{
	struct walk *w = walk_of(ref);

	if (!w)
		return 0;
	w->nr_looks++;
	WALK_ROLLED
	for (int i = 0; i < LUAJIT_FAR_FEW && i < nr; i++, at += 8) {
		if (luajit_is_cframe(ref, at))
			return at;
	}
	return 0;
}

WALK_FUNCTION __u64 luajit_search_far(WALK_REF ref, __u64 at)
{
	WALK_ROLLED
	for (int i = 0; i < LUAJIT_FAR_FEWS; i++) {
		__u64 found = luajit_search(ref, at + i * LUAJIT_FAR_FEW * 8, LUAJIT_FAR_FEW);

		if (found)
			return found;
	}
	return 0;
}
