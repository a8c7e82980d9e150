/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The loop of a walk. The includer defines one turn of it first:
 *
 *   int walk_turn(struct scratch *s)
 *       WALK_GOES_ON; anything else ends the loop
 *
 * It is three nested loops, in functions that take only numbers; the verifier checks each once. So it needs neither bpf_loop (Linux 5.17)
 * nor tail calls, which end after 33, and is the same on all kernels. */
#pragma once
#include "scratch.h"
#include "../walk/walk_clock.h"

#define FEW_TURNS 4    /* 13 % less time at 34 frames than 1; 8 is no better */
#define MANY_TURNS 512
#define MANY_LOOKS 8 /* the cost of MANY_TURNS frames with rows, without their reads */

WALK_FUNCTION int walk_few(__u32 slot)
{
	struct scratch *s = scratch_of(slot);
	__u32 nr_looks;

	if (!s)
		return WALK_ENDED;
	nr_looks = s->walk.nr_looks;
	if (walk_asks_clock(&s->walk) && walk_is_late(&s->walk, bpf_ktime_get_ns(), WALK_MAX_NS))
		return walk_stop(&s->walk, SONDE_STOP_TOO_LONG);
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < FEW_TURNS; turn++) {
		barrier_var(s); /* else the loop keeps addresses within s on the stack, of which Linux 6.1 has not a word to spare */
		if (walk_turn(s) != WALK_GOES_ON)
			return WALK_ENDED;
		if (s->walk.nr_looks != nr_looks) /* a single frame without rows may cost much */
			break;
	}
	return WALK_GOES_ON;
}

WALK_FUNCTION int walk_many(__u32 slot)
{
	struct scratch *s = scratch_of(slot);

#pragma clang loop unroll(disable)
	for (int turn = 0; turn < MANY_TURNS; turn += FEW_TURNS) {
		if (walk_few(slot) != WALK_GOES_ON)
			return WALK_ENDED;
	}
	if (s)
		s->walk.nr_looks += MANY_LOOKS;
	return WALK_GOES_ON;
}

static __always_inline void walk_all(__u32 slot)
{
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < WALK_MAX_TURNS; turn += MANY_TURNS) {
		if (walk_many(slot) != WALK_GOES_ON)
			break;
	}
}
