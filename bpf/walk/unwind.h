/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* unwind: the native walk: from one frame of a user stack to its caller, by the rows of abi/unwind.h, else by validated frame pointers.
 * walk_state.h says what the includer has to provide.
 *
 * Cost: the stack is read in blocks of WALK_BLOCK_BYTES, so most frames need no read at all. A cache by pc has what to do at a frame. On a
 * miss, the mapping of the last frame is tried first; finding the row is one index look-up and about six steps. */
#pragma once
#include "walk_frame_pointer.h"
#include "walk_go.h"
#include "walk_no_caller.h"
#include "walk_rule.h"

/* From an interpreter's JIT code, which runs on the frame of the interpreter's loop, to the loop's caller. Where that code moves sp itself,
 * the word found there is hardly ever a return address. */
WALK_FUNCTION int walk_compiled(WALK_REF ref, __u32 number)
{
	struct walk *w = walk_of(ref);
	const struct sonde_rule *rule;

	if (!w)
		return WALK_ENDED;
	rule = rule_at(w, number);
	if (!rule || rule->kind != SONDE_RULE_KIND_STEP)
		return walk_stop(w, SONDE_STOP_TABLE);
	return walk_rule(w, rule); /* whether it is a return address: see walk_uncalled */
}

/* Only the runtime knows the caller. Where its program does not go on, the stack ends here, marked. */
static __always_inline int walk_at_owner(struct walk *w, __u32 owner)
{
	walk_note_lost(w);
	w->owner = owner;
	w->stop = SONDE_STOP_NO_ROW;
	return WALK_AT_OWNER;
}

/* To be called before the owner's step from the current frame to its caller. */
static __always_inline void walk_leave_to_owner(struct walk *w)
{
	w->owner = 0;
	w->stop = SONDE_STOP_DEPTH; /* as walk_enter sets it */
	w->follows_bx = WALK_BX_LOST; /* and the walk is not begun again, which would store the owner's frames twice */
}

/* Moves from `frame`, the current one, to its caller. */
static __always_inline int walk_caller(struct walk *w, __u64 frame)
{
	const struct sonde_rule *rule;
	int is_trusted = 1;
	__u32 number;

	if (w->compat)
		return walk_stop(w, SONDE_STOP_COMPAT);
	number = walk_lookup(w, frame);
	if (number >= SONDE_MAX_RULES) {
		if (number == WALK_NOT_LOADED)
			return walk_stop(w, SONDE_STOP_NOT_LOADED);
		if (number >= WALK_OWNED)
			return walk_at_owner(w, number - WALK_OWNED);
		if (number >= WALK_COMPILED)
			return walk_compiled(ref_of(w), number - WALK_COMPILED);
		if (number > WALK_NOT_LOADED || number == WALK_NO_MAPPING)
			return walk_no_caller(ref_of(w), number);
	} else {
		rule = rule_at(w, number);
		if (!rule)
			return walk_stop(w, SONDE_STOP_TABLE);
		if (rule->kind == SONDE_RULE_KIND_STEP)
			return walk_rule(w, rule);
		if (rule->kind == SONDE_RULE_KIND_END)
			return walk_stop(w, SONDE_STOP_COMPLETE);
		if (rule->kind == SONDE_RULE_KIND_SIGNAL)
			return walk_signal(ref_of(w));
		if (rule->kind == SONDE_RULE_KIND_SWITCH)
			return walk_switch(ref_of(w), number);
		if (rule->kind != SONDE_RULE_KIND_NONE && rule->kind != SONDE_RULE_KIND_WIDE)
			return walk_stop(w, SONDE_STOP_BAD_RULE);
		is_trusted = rule->kind == SONDE_RULE_KIND_WIDE;
	}
	return walk_frame_pointer(w, is_trusted);
}

/* To be called before the first turn, when the walk has its registers and its process. */
static __always_inline void walk_enter(struct walk *w)
{
	w->mapping.start_pc = w->mapping.end_pc = 0;
	w->block_limit = 0;
	w->nr_frames = 0;
	w->linked_frame = w->lost_sp_frame = ~0u;
	w->nr_signals = 0;
	w->nr_switches = 0;
	w->nr_walks++;
	w->nr_looks = 0;
	w->nr_reads = 0;
	w->clock_cost = WALK_CLOCK_COST;
	w->go_in_scheduler = 0;
	w->owner = 0;
	w->go_g0_sp = 0;
	w->at_gap = w->has_gap = 0;
	w->exact = 1;
	w->stop = SONDE_STOP_DEPTH; /* unless the walk says otherwise */
	walk_note_begin(w);
	walk_begin(w);
}

/* One turn of the walk: stores the current frame in frames[SONDE_MAX_USER_FRAMES], then moves to its caller. Returns WALK_GOES_ON,
 * WALK_ENDED or WALK_AT_OWNER. */
static __always_inline int walk_step(struct walk *w, __u64 *frames)
{
	__u64 frame = w->exact ? w->pc : w->pc | SONDE_FRAME_RETURN;
	__u32 i = w->nr_frames, slot = sonde_frame_slot(i) & (SONDE_MAX_USER_FRAMES - 1);

	if (!w->process_pos)
		return walk_stop(w, SONDE_STOP_NO_PROCESS); /* and no frame: it is not known here when its pc will mean another file */
	if (i >= SONDE_MAX_WALKED_FRAMES)
		return walk_stop(w, SONDE_STOP_DEPTH);
	frames[slot] = frame;
	w->sps[slot] = w->sp;
	w->nr_frames = i + 1;
	if (i < SONDE_LEAF_FRAMES)
		w->hash = hash_step(w->hash, frame);
	return walk_caller(w, frame);
}

/* Maximum number of turns: twice the depth, as a walk may have to start again. */
#define WALK_MAX_TURNS (2 * SONDE_MAX_WALKED_FRAMES)

/* To be called after the last turn: the hash of the kept frames and of the stop reason. Truncated recursions of different depth are one
 * stack. */
static __always_inline __u64 walk_hash(const struct walk *w, const __u64 *frames)
{
	__u32 nr = w->nr_frames > SONDE_LEAF_FRAMES ? w->nr_frames - SONDE_LEAF_FRAMES : 0;
	__u64 hash = w->hash;

	for (__u32 i = 0; i < SONDE_ROOT_FRAMES && i < nr; i++)
		hash = hash_step(hash, frames[SONDE_LEAF_FRAMES + ((w->nr_frames - 1 - i) & (SONDE_ROOT_FRAMES - 1))]);
	return hash_step(hash, w->stop);
}

/* May user space get farther than the kernel did? */
static __always_inline int is_early(enum sonde_stop stop)
{
	return stop == SONDE_STOP_NO_PROCESS || stop == SONDE_STOP_NO_MAPPING || stop == SONDE_STOP_NOT_LOADED;
}
