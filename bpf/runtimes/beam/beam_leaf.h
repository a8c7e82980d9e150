/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* beam_leaf: where the innermost Erlang function's return address is. BeamAsm's code has no unwind data, so its instructions are followed
 * from the pc until it returns, or jumps to another function as its last call; both find the return address at sp. On the way it may go to
 * the thread's stack and back: `lea -0x80(%rbx),%rsp`, a call to C, then `mov %rbp,%rsp` or `mov stop(%r13),%rsp`.
 *
 * What was followed behind a call may belong to a path that the call never returns to. So then the stack decides, too: no word below the
 * return address may look like one. The runtime tells them apart the same way (erts_inspect_frame: tags of terms are never 0 there), but
 * only where all slots are filled in, which a function does after it has made its frame. */
#pragma once
#include "beam_code.h"

#define BEAM_BX 3  /* register numbers as in instructions */
#define BEAM_R12 12
#define BEAM_R13 13
#define BEAM_FEW_STEPS 16
#define BEAM_MAX_FEWS 16

/* Where sp was taken from when the code came back to the Erlang stack; in a state's `held`. */
enum beam_base {
	BEAM_BASE_SP,
	BEAM_BASE_STOP, /* the process's `stop` */
	BEAM_BASE_BP,
};

#define BEAM_JUMP 2 /* besides WALK_GOES_ON and WALK_ENDED: it jumps to now.pc, which is far */

/* In the states, other members than usual: `is_from_bp`: it began on the thread's stack and has not left it; `has_left`: sp is relative to
 * rbp; `is_unsure`: something was called; `is_sp_known`: on the Erlang stack. In the whole, `deepest`: the last `held` of all paths. */

/* Back to the Erlang stack. */
static __always_inline int beam_back(struct walk_emulate *a, int from_bp)
{
	if (a->now.is_sp_known)
		return -1;
	a->now.is_sp_known = 1;
	if (a->now.is_from_bp)
		a->deepest = a->now.held = from_bp ? BEAM_BASE_BP : BEAM_BASE_STOP;
	a->now.is_from_bp = 0;
	return 0;
}

/* An instruction that may write rsp. 0, or -1: not understood. */
WALK_FUNCTION int beam_move(WALK_REF ref, __u32 stop)
{
	struct walk *w = walk_of(ref);
	struct walk_emulate *a = w ? &w->emulation : 0;
	__u32 to;

	if (!a)
		return -1;
	to = a->op == 0x8b || a->op == 0x8d ? emulate_reg(a) : emulate_rm(a);
	if (to != EMULATE_REG_SP || (a->op != 0x8b && a->op != 0x8d && !is_emulated_register(a)))
		return 0;
	if (a->op == 0x8d && !is_emulated_register(a) && emulate_rm(a) == BEAM_BX && a->now.is_sp_known) {
		a->now.is_sp_known = 0;
		return 0;
	}
	if (a->op == 0x8b && !is_emulated_register(a) && emulate_rm(a) == BEAM_R13 && (__u32)a->disp == stop)
		return beam_back(a, 0);
	if ((a->op == 0x89 && a->modrm == 0xec) || (a->op == 0x8b && a->modrm == 0xe5))
		return beam_back(a, 1);
	if (a->op == 0x81 || a->op == 0x83) {
		__u32 which = a->modrm >> 3 & 7;

		if (which == 7 || (!a->now.is_sp_known && (which == 0 || which == 5)))
			return 0;
		if (which && which != 5)
			return -1;
		a->now.sp += which ? -(__s64)a->imm : a->imm;
		return 0;
	}
	if (a->op == 0x8d && is_emulated_on_sp(a)) {
		a->now.sp += a->now.is_sp_known ? a->disp : 0;
		return 0;
	}
	return -1;
}

/* push and pop, and with frame pointers those of rbp. 0, or -1: not understood. */
static __always_inline int beam_push_pop(struct walk_emulate *a, __u32 op)
{
	if (!a->now.is_sp_known)
		return 0;
	if (op == 0x5c && !(a->rex & 1))
		return -1;
	a->now.sp += op >= 0x58 || op == 0x8f ? 8 : -8;
	return 0;
}

/* The frame that rbp links is released. */
static __always_inline int beam_leave(struct walk_emulate *a)
{
	if (a->now.bp_is == EMULATE_BP_FRAME) {
		a->now.sp = a->now.bp + 8;
		a->now.bp_is = EMULATE_BP_KEPT;
	} else if (a->now.has_left) {
		return -1;
	} else {
		a->now.has_left = 1;
		a->now.sp = 8;
	}
	return 0;
}

/* jmp *(reg, %r12, 8): another function, by the entry for it in a table; r12 is the number of the code's generation. */
static __always_inline int is_beam_tail_jump(const struct walk_emulate *a)
{
	return !is_emulated_register(a) && (a->modrm & 7) == 4 && (a->sib >> 3 & 7) == (BEAM_R12 & 7) && a->rex & 2;
}

/* Follows one instruction. */
WALK_FUNCTION int beam_step(WALK_REF ref, __u32 stop)
{
	struct walk *w = walk_of(ref);
	struct walk_emulate *a = w ? &w->emulation : 0;
	__u32 op;
	int err = 0;

	if (!a)
		return WALK_ENDED;
	if (emulate_come(w) || emulate_opcode(ref_of(w)) || emulate_operands(ref_of(w)))
		return emulate_dead_end(ref_of(w));
	op = a->op;
	if (a->now.is_sp_known && (op == 0xc3 || (op == 0xff && (a->modrm >> 3 & 7) == 4 && is_beam_tail_jump(a)))) {
		a->result = 1;
		return WALK_ENDED;
	}
	if (op == 0xe9 || op == 0xeb) {
		a->now.pc += (__u64)(__s64)a->imm;
		return op == 0xe9 && a->now.is_sp_known ? BEAM_JUMP : WALK_GOES_ON;
	}
	if (op == 0xc2 || op == 0xc3 || op == 0xcc || op == 0xcb || op == 0xf4 || op == 0x10b || (op == 0xff && (a->modrm >> 3 & 7) == 4))
		return emulate_dead_end(ref_of(w));
	if ((op >= 0x70 && op <= 0x7f) || (op >= 0x180 && op <= 0x18f) || (op >= 0xe0 && op <= 0xe3))
		emulate_branch(ref_of(w));
	else if (op == 0xe8 || (op == 0xff && (a->modrm >> 3 & 7) == 2))
		a->now.is_unsure |= a->now.is_sp_known;
	else if ((op >= 0x50 && op <= 0x5f) || op == 0x68 || op == 0x6a || op == 0x8f || (op == 0xff && (a->modrm >> 3 & 7) == 6))
		err = beam_push_pop(a, op);
	else if (op == 0xc9)
		err = beam_leave(a);
	else if (op == 0x89 && a->modrm == 0xe5 && a->rex == 0x48 && a->now.is_sp_known) {
		a->now.bp_is = EMULATE_BP_FRAME;
		a->now.bp = a->now.sp;
	} else if (op == 0x89 || op == 0x8b || op == 0x8d || op == 0x81 || op == 0x83 || op == 0x01 || op == 0x29)
		err = beam_move(ref_of(w), stop);
	else if (op == 0x03 || op == 0x2b || op == 0x87)
		err = emulate_reg(a) == EMULATE_REG_SP || (is_emulated_register(a) && emulate_rm(a) == EMULATE_REG_SP);
	return err ? emulate_dead_end(ref_of(w)) : WALK_GOES_ON;
}

WALK_FUNCTION int beam_few_steps(WALK_REF ref, __u32 stop)
{
	int at = WALK_GOES_ON;

	WALK_ROLLED
	for (int i = 0; i < BEAM_FEW_STEPS; i++) {
		at = beam_step(ref, stop);
		if (at != WALK_GOES_ON)
			return at;
	}
	return at;
}

/* Does a function begin at `pc`? Its ErtsCodeInfo is before it. */
WALK_FUNCTION int is_beam_entry(WALK_REF ref, __u64 header, __u32 functions, __u64 pc)
{
	struct walk *w = walk_of(ref);
	__u64 nr;

	if (!w || !header || read_user(w, &nr, sizeof(nr), header) || nr >= BEAM_MAX_MODULES)
		return 0;
	w->emulation.line[0] = header + functions;
	return beam_search(ref_of(w), nr, 8, pc) == 1 && w->emulation.line[1] == pc - SONDE_BEAM_INFO_BYTES;
}

/* Follows the code from w->pc on, in the module with this header (0: in none). 1: emulation.now says where the return address is; 0. */
static __always_inline int beam_follow(struct walk *w, const struct sonde_beam *b, __u64 header, int on_thread)
{
	struct walk_emulate *a = &w->emulation;

	emulate_start(ref_of(w), w->pc, 0);
	a->now.is_sp_known = !on_thread;
	a->now.is_from_bp = on_thread;
	a->deepest = a->now.held = BEAM_BASE_SP;
	WALK_ROLLED
	for (int i = 0; i < BEAM_MAX_FEWS; i++) {
		int at = beam_few_steps(ref_of(w), b->stop);

		if (at == WALK_ENDED)
			return a->result;
		if (at != BEAM_JUMP)
			continue;
		if (is_beam_entry(ref_of(w), header, b->functions, a->now.pc))
			return 1;
	}
	return 0;
}
