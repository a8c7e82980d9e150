/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* arch_arm64: the arm64 part of the walk: calls, leaf functions without rows, signal frames, signed return addresses. Instructions: Arm ARM
 * DDI 0487, section C6.2. */
#pragma once
#include "walk_code.h"

/* Pointer authentication stores its code in the bits above the address: 48 bits, as user addresses have unless a program asks for more.
 * Kernels with 39 or 42 bits have a part of it below: such an address is in no mapping, and the walk ends with a mark. */
#define WALK_ADDRESS_BITS 48

static __always_inline __u64 code_pc(__u64 word)
{
	return word & ((1ULL << WALK_ADDRESS_BITS) - 1);
}

/* x30 is 0 when a thread begins, so a return address of 0 is valid in any frame. */
static __always_inline int is_stack_top(struct walk *w, __u64 cfa)
{
	return 1;
}

static __always_inline int is_bl(__u32 code)
{
	return (code & 0xfc000000) == 0x94000000;
}

/* BLR, and BLRAA, BLRAB, BLRAAZ, BLRABZ */
static __always_inline int is_blr(__u32 code)
{
	return (code & 0xfefff000) == 0xd63f0000;
}

WALK_FUNCTION int walk_after_call(WALK_REF ref, __u64 pc)
{
	struct walk *w = walk_of(ref);
	__u32 code = 0;

	if (!w || pc & 3 || read_user(w, &code, sizeof(code), pc - sizeof(code)))
		return 0;
	return is_bl(code) || is_blr(code);
}

#define WALK_MAX_LEAF_BYTES (1u << 20) /* a function is not longer */
#define WALK_MAX_FRAMELESS_BYTES 1024

/* The distance from the start of the called function to `pc`, by the BL before `ret`. WALK_MAX_LEAF_BYTES: there is no such call, or it
 * does not lead to code before pc. */
WALK_FUNCTION __u32 walk_called_distance(WALK_REF ref, __u64 ret, __u64 pc)
{
	struct walk *w = walk_of(ref);
	__u64 distance;
	__u32 call = 0;

	if (!w || ret & 3 || read_user(w, &call, sizeof(call), ret - 4) || !is_bl(call))
		return WALK_MAX_LEAF_BYTES;
	distance = pc - (ret - 4 + (__u64)(__s64)((__s32)(call << 6) >> 4));
	return distance < WALK_MAX_LEAF_BYTES ? distance : WALK_MAX_LEAF_BYTES;
}

/* RET, RETAA, RETAB */
static __always_inline int is_ret(__u32 code)
{
	return (code & 0xfffffc1f) == 0xd65f0000 || code == 0xd65f0bff || code == 0xd65f0fff;
}

/* BTI c and jc, PACIASP, PACIBSP: the first instruction of a function */
static __always_inline int is_begin(__u32 code)
{
	return code == 0xd503245f || code == 0xd50324df || code == 0xd503233f || code == 0xd503237f;
}

/* STP x29, x30, [sp, #imm] with or without write-back: the frame record */
static __always_inline int is_save_record(__u32 code)
{
	return (code & 0xfe407fff) == 0xa8007bfd;
}

static __always_inline int walk_moved_by_link(struct walk *w, __u64 ret)
{
	if (walk_find_mapping(w, ret - 1))
		return 0;
	w->pc = ret;
	w->exact = WALK_RETURN;
	return WALK_FRAMELESS;
}

static __always_inline int walk_emulate(struct walk *w)
{
	return EMULATE_UNKNOWN;
}

static __always_inline int walk_uses_bp(struct walk *w)
{
	return 0;
}

/* Always yes: code that keeps frame records uses x29 for nothing else, so a zero ends their chain. */
static __always_inline int walk_is_outermost(WALK_REF ref)
{
	(void)ref;
	return 1;
}

/* Always no: in memory without rows, a function that calls another has a frame record. */
static __always_inline int walk_returns_at_once(WALK_REF ref)
{
	(void)ref;
	return 0;
}

/* In code without rows the innermost function may have no frame record at this point. Then its return address is in x30, and sp is not
 * known. The next instruction may tell (the store of the record, a function's start, ret). Else compares x30 with the record's return
 * address, by the functions that their calls lead to: of two that begin before pc, pc is in the nearer one. */
WALK_FUNCTION int walk_frameless(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u64 ret, record = 0;
	__u32 distance, other = WALK_MAX_LEAF_BYTES, code = 0;

	if (!w || w->exact != WALK_EXACT || read_user(w, &code, sizeof(code), w->pc))
		return 0;
	ret = code_pc(w->regs[WALK_REG_RA]);
	if (is_ret(code) || is_begin(code) || is_save_record(code))
		return walk_after_call(ref_of(w), ret) ? walk_moved_by_link(w, ret) : 0;
	if (!walk_peek(w, w->bp + 8, &record))
		other = walk_called_distance(ref_of(w), code_pc(record), w->pc);
	if (ret == code_pc(record)) /* it has its record and has not called anything */
		return 0;
	distance = walk_called_distance(ref_of(w), ret, w->pc);
	if (other < distance) /* x30 was left by a call in this function */
		return 0;
	if (distance == other || distance > WALK_MAX_FRAMELESS_BYTES)
		return walk_after_call(ref_of(w), ret) ? WALK_UNSURE : 0;
	if (walk_moved_by_link(w, ret) != WALK_FRAMELESS)
		return 0;
	w->lost_sp_frame = w->nr_frames; /* it may have locals */
	return WALK_FRAMELESS;
}

/* struct rt_sigframe at sp behind the handler's return address (arch/arm64/kernel/signal.c): struct siginfo (128 bytes), then struct
 * ucontext with struct sigcontext at 176: fault_address, regs[31], sp, pc (uapi/asm/sigcontext.h). */
#define SIGNAL_REGS_OFF (128 + 176 + 8)
#define SIGNAL_NR_REGS 33

WALK_FUNCTION int walk_signal(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u64 saved[SIGNAL_NR_REGS];

	if (!w)
		return WALK_ENDED;
	walk_note_lost(w);
	if (is_sp_lost(w)) /* and the kernel's own frame record behind the handler's skips the interrupted frame */
		return walk_stop(w, SONDE_STOP_BAD_RULE);
	if (++w->nr_signals > WALK_MAX_SIGNALS)
		return walk_stop(w, SONDE_STOP_DEPTH);
	if (read_user(w, saved, sizeof(saved), w->sp + SIGNAL_REGS_OFF))
		return walk_stop(w, SONDE_STOP_READ_FAULT);
	for (int i = 0; i < 31; i++)
		w->regs[i] = saved[i];
	w->bp = saved[29];
	w->sp = saved[31];
	w->pc = saved[32];
	w->exact = WALK_EXACT;
	walk_begin(w);
	return WALK_GOES_ON;
}

/* mov x8, #139; svc #0: 139 is rt_sigreturn. In the vdso, which has no CFI for it, and in musl. */
WALK_FUNCTION int walk_is_sigreturn(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	__u32 code[2] = {};

	if (!w || w->exact || read_user(w, code, sizeof(code), w->pc))
		return 0;
	return code[0] == 0xd2801168 && code[1] == 0xd4000001;
}

/* Always no: a return address without a call before it ends the stack with a mark, whatever the code does. */
WALK_FUNCTION int walk_ends_process(WALK_REF ref)
{
	return 0;
}

/* Always unknown: only the callee's instructions would show it, and they are not read. */
WALK_FUNCTION __u64 walk_link_of(WALK_REF ref, __u64 ret)
{
	return WALK_LINK_ANY;
}
