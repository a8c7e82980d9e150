/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* luajit_leaf: an interrupted instruction of LuaJIT's interpreter (vm_x64.dasc). Its registers say where it is: rdx is the base, rbx the
 * bytecode pc behind the current instruction, rcx often the base of a function that is to be called, rbp what it works with. During a call
 * or a return rbx belongs to the caller already, or still: then the function at rdx, which has not begun, or has ended, is left out. */
#pragma once
#include "luajit_stack.h"

#define LUAJIT_REG_DX 1 /* DWARF numbers */
#define LUAJIT_REG_CX 2

#define LUAJIT_EMPTY 3 /* besides RUNTIME_GOES_ON and RUNTIME_ENDED: the function that C calls has not begun */

static __always_inline int luajit_begin(struct runtime_walk *r, __u64 base, __u64 pc, __u64 link, int skip)
{
	r->cursor = base;
	r->state[LUAJIT_PC] = pc;
	r->state[LUAJIT_SURE] = 0;
	r->state[LUAJIT_SKIP] = skip;
	r->state[LUAJIT_LINK] = link;
	return RUNTIME_GOES_ON;
}

/* Is the next instruction the one that stores rbx as the link of the function to be called: mov %rbx,-8(%rdx)? */
static __always_inline int luajit_stores_link(struct walk *w)
{
	__u8 code[4] = {};

	return !read_user(w, code, sizeof(code), w->pc) && code[0] == 0x48 && code[1] == 0x89 && code[2] == 0x5a && code[3] == 0xf8;
}

/* rbx is a distance with a type: the function at rdx calls one at rcx, or is left by this link. */
static __always_inline int luajit_leaf_of_distance(struct walk *w, struct runtime_walk *r, int kind, __u64 base, __u64 pc)
{
	__u64 called = w->regs[LUAJIT_REG_CX], resumed = 0;
	__u32 type = pc & 7;

	if (called > base && called - base == (pc & ~7ULL)) {
		if (type == LUAJIT_FRAME_C || type == LUAJIT_FRAME_CP) {
			r->cursor = base;
			return LUAJIT_EMPTY;
		}
		if (type == LUAJIT_FRAME_CONT && read_user(w, &resumed, sizeof(resumed), called - 24))
			return RUNTIME_ENDED;
		return luajit_begin(r, base, resumed, 0, 0);
	}
	if (kind != LUAJIT_BAD && (pc == r->buffer[LUAJIT_FRAME + 3] || luajit_stores_link(w)))
		return luajit_begin(r, base, 0, pc, 1);
	if (kind == LUAJIT_C && pc < 8) /* a number: that of the values that a coroutine has returned */
		return luajit_begin(r, base, 0, 0, 0);
	return RUNTIME_ENDED;
}

/* rdx is something else: after a call of C, or before one, with the base in rbp, else in the state. */
static __always_inline int luajit_leaf_elsewhere(struct walk *w, struct runtime_walk *r)
{
	__u64 base = w->bp;
	int kind = luajit_look(ref_of(w), base);

	if (kind != LUAJIT_LUA && kind != LUAJIT_C) {
		base = r->buffer[LUAJIT_THREAD_BASE];
		kind = luajit_look(ref_of(w), base);
	}
	if (kind != LUAJIT_LUA && kind != LUAJIT_C)
		return RUNTIME_ENDED;
	return luajit_begin(r, base, w->regs[WALK_REG_BX], 0, 0);
}

/* Finds the innermost frame. RUNTIME_GOES_ON, LUAJIT_EMPTY; RUNTIME_ENDED: it is not known. */
WALK_FUNCTION int luajit_leaf(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct runtime_walk *r = runtime_walk_of(ref);
	__u64 base, pc, caller;
	int kind;

	if (!w || !r)
		return RUNTIME_ENDED;
	base = w->regs[LUAJIT_REG_DX];
	pc = w->regs[WALK_REG_BX];
	kind = luajit_look(ref, base);
	if (kind == LUAJIT_LUA && luajit_is_in_code(r, pc) && !luajit_stores_link(w))
		return luajit_begin(r, base, pc, 0, 0);
	if (kind == LUAJIT_C && pc == r->buffer[LUAJIT_CODE] + 4)
		return luajit_begin(r, base, 0, 0, 0);
	if (base != r->buffer[LUAJIT_THREAD_STACK] + LUAJIT_BOTTOM && !luajit_is_in_stack(r, base))
		return luajit_leaf_elsewhere(w, r);
	if (pc & 3)
		return luajit_leaf_of_distance(w, r, kind, base, pc);
	caller = luajit_caller(ref, base, pc);
	if (caller && luajit_look(ref, caller) == LUAJIT_LUA && luajit_is_in_code(r, pc))
		return luajit_begin(r, caller, pc, 0, 0);
	return kind == LUAJIT_C ? luajit_begin(r, base, 0, 0, 0) : luajit_leaf_elsewhere(w, r);
}

/* The interpreter's functions save rbp, rbx, r15, r14 and take 40 bytes, and end likewise. Where the return address is, as bytes above sp,
 * before the C frame is in the chain of its state, or after it was taken out; -1: it is in it. */
WALK_FUNCTION int luajit_unchained(WALK_REF ref, __u64 entry, __u64 chained)
{
	struct walk *w = walk_of(ref);
	__u8 code[8] = {};
	__u64 off;

	if (!w || read_user(w, code, sizeof(code), w->pc))
		return -1;
	off = w->pc - entry;
	if (off < chained - entry)
		return off >= 10 ? 72 : off >= 6 ? 32 : off >= 4 ? 24 : off >= 2 ? 16 : off ? 8 : 0;
	if (code[0] == 0x31 && code[1] == 0xc0 && code[2] == 0x48 && code[3] == 0x83 && code[4] == 0xc4 && code[5] == 0x28)
		return 72; /* xor %eax,%eax; add $0x28,%rsp */
	if (code[0] == 0x48 && code[1] == 0x83 && code[2] == 0xc4 && code[3] == 0x28 && code[4] == 0x41)
		return 72;
	if (code[0] == 0x41 && code[1] == 0x5e && code[2] == 0x41 && code[3] == 0x5f && code[4] == 0x5b)
		return 32;
	if (code[0] == 0x41 && code[1] == 0x5f && code[2] == 0x5b && code[3] == 0x5d && code[4] == 0xc3)
		return 24;
	if (code[0] == 0x5b && code[1] == 0x5d && code[2] == 0xc3)
		return 16;
	if (code[0] == 0x5d && code[1] == 0xc3)
		return 8;
	return code[0] == 0xc3 ? 0 : -1;
}
