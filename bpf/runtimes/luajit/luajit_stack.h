/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* luajit_stack: the frames on the stack of a lua_State, from a base up to the C boundary, as lj_debug_frame and debug_framepc go
 * (lj_debug.c). Below a base are the function and the link: the caller's pc, or a distance and a type (lj_frame.h). */
#pragma once
#include "../../abi/luajit.h"
#include "../runtime.h"

/* In a walk's `state`. Of the frame at the cursor: its pc (0: not known); LUAJIT_SURE: that pc must be in its function; LUAJIT_SKIP: it is
 * no frame of its own; LUAJIT_LINK: its link, where that is not stored yet (0: it is). */
enum luajit_state {
	LUAJIT_L,      /* lua_State of the last run; 0: none yet */
	LUAJIT_CFRAME, /* the next C frame of that one */
	LUAJIT_BASE,   /* where its next run begins */
	LUAJIT_WALK,   /* the walk that this is about */
	LUAJIT_PC,
	LUAJIT_SURE,
	LUAJIT_SKIP,
	LUAJIT_LINK,
};

/* Words of the buffer. */
#define LUAJIT_THREAD 0 /* lua_State, up to its C frame */
#define LUAJIT_THREAD_BYTES 88
#define LUAJIT_THREAD_GLOBAL 2
#define LUAJIT_THREAD_BASE 4
#define LUAJIT_THREAD_MAX 6
#define LUAJIT_THREAD_STACK 7
#define LUAJIT_THREAD_CFRAME 10
#define LUAJIT_FRAME 16 /* the four words below a base: continuation, its pc, function, link */
#define LUAJIT_FUNCTION 20
#define LUAJIT_FUNCTION_BYTES 40
#define LUAJIT_CODE 24  /* the function's first instruction */
#define LUAJIT_PROTO 32
#define LUAJIT_CHUNK 45 /* of its name */
#define LUAJIT_C_FRAME 48 /* of the interpreter's activation */
#define LUAJIT_C_BYTES 80

#define LUAJIT_IS_THREAD 6 /* types of objects: ~LJ_T* */
#define LUAJIT_IS_FUNCTION 8
#define LUAJIT_TAG_SHIFT 47
#define LUAJIT_TAG_FUNCTION 0x1fff7 /* LJ_TFUNC, LJ_TTHREAD */
#define LUAJIT_TAG_THREAD 0x1fff9
#define LUAJIT_IN_C 1 /* FF_C: its own native frame shows it */
#define LUAJIT_BOTTOM 16 /* the first two slots of a stack are a dummy frame */
#define LUAJIT_CONT_CALLBACK 1
/* enum in lj_frame.h, with FRAME_P */
#define LUAJIT_FRAME_C 1
#define LUAJIT_FRAME_CONT 2
#define LUAJIT_FRAME_VARG 3
#define LUAJIT_FRAME_LUAP 4
#define LUAJIT_FRAME_CP 5

enum luajit_kind { LUAJIT_BAD, LUAJIT_DUMMY, LUAJIT_C, LUAJIT_LUA };

static __always_inline __u32 luajit_byte(__u64 word, int number)
{
	return word >> (8 * number) & 0xff;
}

static __always_inline int luajit_is_in_stack(const struct runtime_walk *r, __u64 base)
{
	return !(base & 7) && base > r->buffer[LUAJIT_THREAD_STACK] + LUAJIT_BOTTOM && base <= r->buffer[LUAJIT_THREAD_MAX];
}

/* Reads what is at a base: an enum luajit_kind. */
WALK_FUNCTION int luajit_look(WALK_REF ref, __u64 base)
{
	struct walk *w = walk_of(ref);
	struct runtime_walk *r = runtime_walk_of(ref);
	__u64 function;

	if (!w || !r || !luajit_is_in_stack(r, base) || read_user(w, &r->buffer[LUAJIT_FRAME], 32, base - 32))
		return LUAJIT_BAD;
	function = r->buffer[LUAJIT_FRAME + 2];
	if (function >> LUAJIT_TAG_SHIFT == LUAJIT_TAG_THREAD)
		return LUAJIT_DUMMY;
	if (function >> LUAJIT_TAG_SHIFT != LUAJIT_TAG_FUNCTION)
		return LUAJIT_BAD;
	function &= (1ULL << LUAJIT_TAG_SHIFT) - 1;
	if (read_user(w, &r->buffer[LUAJIT_FUNCTION], LUAJIT_FUNCTION_BYTES, function) ||
	    luajit_byte(r->buffer[LUAJIT_FUNCTION + 1], 1) != LUAJIT_IS_FUNCTION)
		return LUAJIT_BAD;
	if (luajit_byte(r->buffer[LUAJIT_FUNCTION + 1], 2))
		return LUAJIT_C;
	if (read_user(w, &r->buffer[LUAJIT_PROTO], SONDE_LUAJIT_PROTO_BYTES, r->buffer[LUAJIT_CODE] - SONDE_LUAJIT_PROTO_BYTES) ||
	    luajit_byte(r->buffer[LUAJIT_PROTO + SONDE_LUAJIT_PROTO_SIZE], 1) != SONDE_LUAJIT_IS_PROTO)
		return LUAJIT_BAD;
	if (read_user(w, &r->buffer[LUAJIT_CHUNK], SONDE_LUAJIT_CHUNK_BYTES,
		      r->buffer[LUAJIT_PROTO + SONDE_LUAJIT_PROTO_CHUNK] + SONDE_LUAJIT_CHUNK_OFF))
		return LUAJIT_BAD;
	return LUAJIT_LUA;
}

/* Is `pc` behind an instruction of the function that was looked at, or at its first one? */
static __always_inline int luajit_is_in_code(const struct runtime_walk *r, __u64 pc)
{
	__u64 off = pc - r->buffer[LUAJIT_CODE];

	return !(off & 3) && off <= (r->buffer[LUAJIT_PROTO + SONDE_LUAJIT_PROTO_SIZE] >> 32) * 4;
}

/* The base of the frame that called the one at `base` by the instruction before `pc`; 0: not readable. */
WALK_FUNCTION __u64 luajit_caller(WALK_REF ref, __u64 base, __u64 pc)
{
	struct walk *w = walk_of(ref);
	__u32 instruction = 0;

	if (!w || pc < 4 || read_user(w, &instruction, sizeof(instruction), pc - 4))
		return 0;
	return base - 16 - 8 * (__u64)(instruction >> 8 & 0xff);
}

/* Stores the frame that was looked at. RUNTIME_ENDED: its pc is elsewhere, or there is no room. */
static __always_inline int luajit_push(struct runtime_walk *r, int kind)
{
	__u64 pc = r->state[LUAJIT_PC], where = SONDE_LUAJIT_NO_POSITION, code = r->buffer[LUAJIT_CODE];
	__u32 number = luajit_byte(r->buffer[LUAJIT_FUNCTION + 1], 2);

	if (kind == LUAJIT_C)
		return number == LUAJIT_IN_C ? RUNTIME_GOES_ON : runtime_push(r, SONDE_LUAJIT_BUILTIN | number, 0, 0, 0);
	if (kind != LUAJIT_LUA)
		return RUNTIME_GOES_ON;
	if (pc && luajit_is_in_code(r, pc))
		where = (pc - code) / 4;
	else if (r->state[LUAJIT_SURE])
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	return runtime_push(r, code - SONDE_LUAJIT_PROTO_BYTES, where, luajit_cookie(&r->buffer[LUAJIT_PROTO], &r->buffer[LUAJIT_CHUNK]),
			    0);
}

#define LUAJIT_RUN_ENDS 2 /* besides RUNTIME_GOES_ON and RUNTIME_ENDED: the frame was called by C; the cursor is the next run's */

/* Moves the cursor by a link that is a distance. */
static __always_inline int luajit_move(struct runtime_walk *r, __u64 link)
{
	__u64 delta = link & ~7ULL;
	__u32 type = link & 7;

	if (type == LUAJIT_FRAME_LUAP || !delta || delta >= r->cursor - r->buffer[LUAJIT_THREAD_STACK])
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	r->cursor -= delta;
	r->state[LUAJIT_PC] = r->state[LUAJIT_SURE] = 0;
	r->state[LUAJIT_SKIP] = type == LUAJIT_FRAME_VARG;
	if (type == LUAJIT_FRAME_C || type == LUAJIT_FRAME_CP)
		return LUAJIT_RUN_ENDS;
	if (type != LUAJIT_FRAME_CONT)
		return RUNTIME_GOES_ON;
	if (r->buffer[LUAJIT_FRAME] == LUAJIT_CONT_CALLBACK)
		return LUAJIT_RUN_ENDS;
	r->state[LUAJIT_PC] = r->buffer[LUAJIT_FRAME + 1];
	r->state[LUAJIT_SURE] = 1;
	return RUNTIME_GOES_ON;
}

/* Stores the frame at the cursor and moves to its caller. */
WALK_FUNCTION int luajit_step(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct runtime_walk *r = runtime_walk_of(ref);
	int kind;
	__u64 link;

	if (!w || !r)
		return RUNTIME_ENDED;
	kind = luajit_look(ref, r->cursor);
	if (kind == LUAJIT_BAD)
		return runtime_stop(r, SONDE_RUNTIME_STOP_TORN);
	if (!r->state[LUAJIT_SKIP] && luajit_push(r, kind) != RUNTIME_GOES_ON)
		return RUNTIME_ENDED;
	link = r->state[LUAJIT_LINK] ? r->state[LUAJIT_LINK] : r->buffer[LUAJIT_FRAME + 3];
	r->state[LUAJIT_LINK] = r->state[LUAJIT_SKIP] = 0;
	if (link & 3)
		return luajit_move(r, link);
	r->cursor = luajit_caller(ref, r->cursor, link);
	r->state[LUAJIT_PC] = link;
	r->state[LUAJIT_SURE] = 1;
	return RUNTIME_GOES_ON;
}

#define LUAJIT_FEW 8

WALK_FUNCTION int luajit_few_steps(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	int at = RUNTIME_GOES_ON;

	if (!w)
		return RUNTIME_ENDED;
	w->nr_looks++; /* for the clock */
	WALK_ROLLED
	for (int step = 0; step < LUAJIT_FEW && at == RUNTIME_GOES_ON; step++)
		at = luajit_step(ref);
	return at;
}

/* Stores the frames from the cursor up to those that C called. LUAJIT_RUN_ENDS or RUNTIME_ENDED. */
WALK_FUNCTION int luajit_run(WALK_REF ref)
{
	struct runtime_walk *r = runtime_walk_of(ref);

	WALK_ROLLED
	for (int turn = 0; turn < 2 * SONDE_MAX_RUNTIME_FRAMES / LUAJIT_FEW; turn++) {
		int at = luajit_few_steps(ref);

		if (at != RUNTIME_GOES_ON)
			return at;
	}
	return r ? runtime_stop(r, SONDE_RUNTIME_STOP_DEPTH) : RUNTIME_ENDED;
}
