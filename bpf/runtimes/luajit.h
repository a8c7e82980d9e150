/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* luajit: from a native frame of LuaJIT's code to its caller, with the run of Lua frames that it executes. Each activation of the
 * interpreter has a C frame of the same size (CFRAME_*, lj_frame.h), which holds its lua_State and is in the chain that begins in that
 * state. So a frame is proved by the state that it names, and no variable of a thread is needed. A trace (compiled code) runs on the
 * interpreter's C frame, below which it has taken some stack.
 *
 * Cost: one read for an activation; three for each Lua frame, and one for its caller's instruction. */
#pragma once
#include "luajit/luajit_cframe.h"
#include "luajit/luajit_leaf.h"

#define LUAJIT_NEAR 3 /* the interpreter's helpers have no frames; they push a word or two */
#define LUAJIT_HELPER_BYTES 512  /* of a helper that C and traces call: lj_vm_floor and its kind, which push nothing */
#define LUAJIT_VMSTATE_GC (-3)   /* ~LJ_VMST_* */
#define LUAJIT_VMSTATE_EXIT (-4)

/* Begins at a trace, or behind its end, where a collection of garbage runs. The calls in a trace are in no frames until it is left; the
 * function where it began is. 0; -1: it is none. */
WALK_FUNCTION int luajit_trace(WALK_REF ref, __u32 cur_l, __u32 vmstate, int is_vm)
{
	struct walk *w = walk_of(ref);
	struct runtime_walk *r = runtime_walk_of(ref);
	__u64 global, base = 0;
	__s32 number = 0;

	if (!w || !r)
		return -1;
	global = r->buffer[LUAJIT_THREAD_GLOBAL];
	if (read_user(w, &number, sizeof(number), global + vmstate) || read_user(w, &base, sizeof(base), global + cur_l + 8))
		return -1;
	if (is_vm && !w->exact && number == LUAJIT_VMSTATE_GC) {
		luajit_begin(r, r->buffer[LUAJIT_THREAD_BASE], 0, 0, 0);
		return 0;
	}
	if (is_vm && number < 0 && number != LUAJIT_VMSTATE_EXIT)
		return -1;
	if (!base && is_vm)
		base = r->buffer[LUAJIT_THREAD_BASE];
	if (!base || runtime_push(r, SONDE_LUAJIT_TRACE, number < 0 ? 0 : number, 0, 0) != RUNTIME_GOES_ON)
		return -1;
	luajit_begin(r, base, 0, 0, 0);
	return 0;
}

/* Finds the innermost frame of the run where the interpreter has called something, or another activation was inside it. */
WALK_FUNCTION int luajit_called(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct runtime_walk *r = runtime_walk_of(ref);
	__u64 base, pc;
	int kind;

	if (!w || !r)
		return RUNTIME_ENDED;
	base = r->buffer[LUAJIT_THREAD_BASE];
	pc = r->buffer[LUAJIT_C_FRAME + LUAJIT_C_PC];
	if (r->state[LUAJIT_BASE])
		return luajit_begin(r, r->state[LUAJIT_BASE], pc, 0, 0);
	if (w->sp == r->state[LUAJIT_PC]) /* it has resumed a coroutine */
		return luajit_begin(r, base, pc, 0, 0);
	kind = luajit_look(ref, w->bp);
	if (kind == LUAJIT_LUA || kind == LUAJIT_C) /* it calls what needs no state, and keeps the base */
		return luajit_begin(r, w->bp, 0, 0, 0);
	return luajit_begin(r, base, pc, 0, 0);
}

/* Ends the run, and moves to the caller of its activation. */
WALK_FUNCTION int luajit_leave(WALK_REF ref, __u64 at)
{
	struct walk *w = walk_of(ref);
	struct runtime_walk *r = runtime_walk_of(ref);
	__u64 number;

	if (!w || !r)
		return WALK_ENDED;
	number = w->nr_frames - 1;
	r->state[LUAJIT_BASE] = r->cursor;
	r->state[LUAJIT_CFRAME] = r->buffer[LUAJIT_C_FRAME + LUAJIT_C_PREVIOUS] & ~LUAJIT_C_FLAGS;
	if (runtime_push(r, 0, number < SONDE_LEAF_FRAMES ? number : SONDE_RUNTIME_UNPLACED, 0, SONDE_RUNTIME_ENTRY) != RUNTIME_GOES_ON)
		return walk_stop(w, SONDE_STOP_DEPTH);
	walk_return_to(w, r->buffer[LUAJIT_C_FRAME + LUAJIT_C_RETURN], at + LUAJIT_C_BYTES, r->buffer[LUAJIT_C_FRAME + LUAJIT_C_BP]);
	r->state[LUAJIT_PC] = w->sp;
	return WALK_GOES_ON;
}

/* From an activation that has no C frame of its own any more, or not yet, to its caller. -1: it is none. */
WALK_FUNCTION int luajit_outside(WALK_REF ref, __u64 entry, __u64 chained)
{
	struct walk *w = walk_of(ref);
	__u64 at, pc = 0, bp;
	int off;

	if (!w)
		return -1;
	bp = w->bp;
	off = luajit_unchained(ref, entry, chained);
	if (off < 0 && (walk_peek(w, w->sp, &pc) || walk_called_distance(ref, pc, w->pc) >= LUAJIT_HELPER_BYTES))
		return -1;
	at = w->sp + (off < 0 ? 0 : off);
	if (walk_peek(w, at, &pc) || (off > 0 && walk_peek(w, at - 8, &bp)))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	walk_return_to(w, pc, at + 8, bp);
	return WALK_GOES_ON;
}

static __always_inline int luajit_leave_early(struct walk *w, const struct sonde_luajit *j)
{
	__u64 entry = j->entries[0];

	if (w->pc >= j->entries[3])
		return luajit_outside(ref_of(w), j->entries[3], j->chained[1]);
	if (w->pc >= j->entries[1])
		entry = w->pc >= j->entries[2] ? j->entries[2] : j->entries[1];
	return luajit_outside(ref_of(w), entry, j->chained[0]);
}

/* The innermost frame of the activation: as luajit_leaf. */
static __always_inline int luajit_enter(struct walk *w, struct runtime_walk *r, const struct sonde_luajit *j)
{
	/* C that lj_vm_cpcall calls, with no frame in between; or the function that C calls is still to be looked at */
	if ((__s32)r->buffer[LUAJIT_C_FRAME + LUAJIT_C_RESULTS] < 0 ||
	    (w->exact && w->pc - j->entries[1] < j->begun - j->entries[1])) {
		r->cursor = r->state[LUAJIT_BASE] ? r->state[LUAJIT_BASE] : r->buffer[LUAJIT_THREAD_BASE];
		return LUAJIT_EMPTY;
	}
	if (w->exact && w->pc - j->left[0] < j->left[1] - j->left[0]) {
		r->cursor = w->regs[WALK_REG_BX];
		return LUAJIT_EMPTY;
	}
	return w->exact ? luajit_leaf(ref_of(w)) : luajit_called(ref_of(w));
}

/* The frame is in other code in memory, such as a regular expression's. */
static __always_inline int luajit_decline(struct walk *w)
{
	w->stop = SONDE_STOP_NO_ROW;
	return WALK_AT_OWNER;
}

static __always_inline int luajit_frame(struct walk *w, struct runtime_walk *r, const struct sonde_luajit *j)
{
	__u64 pc = w->pc - !w->exact, at = 0;
	int is_vm = pc - j->vm.start_pc < j->vm.end_pc - j->vm.start_pc, run;

	walk_note_lost(w);
	if (w->exact == WALK_EXACT_PC)
		return runtime_owner_torn(w, r);
	if (r->state[LUAJIT_WALK] != w->nr_walks)
		r->state[LUAJIT_L] = r->state[LUAJIT_PC] = 0;
	r->state[LUAJIT_WALK] = w->nr_walks;
	if (is_vm)
		at = luajit_search(ref_of(w), w->sp, w->exact ? LUAJIT_NEAR : 1);
	if (at) {
		run = luajit_enter(w, r, j);
	} else {
		run = is_vm && w->exact ? luajit_leave_early(w, j) : -1;
		if (run >= 0)
			return run;
		at = luajit_search_far(ref_of(w), w->sp);
		if (!at || luajit_trace(ref_of(w), j->cur_l, j->vmstate, is_vm))
			return is_vm ? runtime_owner_torn(w, r) : luajit_decline(w);
		run = RUNTIME_GOES_ON;
	}
	if (run == RUNTIME_GOES_ON)
		run = luajit_run(ref_of(w));
	if (run == RUNTIME_ENDED)
		return r->record.stop == SONDE_RUNTIME_STOP_DEPTH ? walk_stop(w, SONDE_STOP_DEPTH) : runtime_owner_torn(w, r);
	return luajit_leave(ref_of(w), at);
}
