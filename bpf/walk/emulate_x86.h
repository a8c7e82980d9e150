/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* emulate_x86: follows the instructions of an x86-64 function without unwind rows, from one instruction until the function returns. It
 * tracks sp and rbp, so at `ret` it knows where the return address and the caller's rbp are. This proves the caller; a frame pointer does
 * not: .NET's optimized code keeps none, nor does a leaf of V8's. Calls are assumed to preserve sp and rbp. Conditional jumps are not
 * taken, except at a dead end (a loop, code that does not continue, an instruction that is not understood): then the nearest one is taken.
 * With none left there is no result. Instruction formats: Intel SDM volume 2, chapter 2, appendix A. */
#pragma once
#include "arch_x86.h"

#define EMULATE_MAX_OFF (64 << 10)
#define EMULATE_REG_DX 2 /* register numbers as in instructions */
#define EMULATE_REG_SP 4
#define EMULATE_REG_BP 5
#define EMULATE_NOT_SAVED (-1)

/* The position goes through memory (volatile): else the verifier would check the rest once for each possible position. */
static __always_inline __u8 emulate_byte(struct walk_emulate *a)
{
	__u32 at = *(volatile __u32 *)&a->at;

	*(volatile __u32 *)&a->at = at + 1;
	return a->code[at & (sizeof(a->code) - 1)];
}

static __always_inline __s32 emulate_word(struct walk_emulate *a)
{
	__u32 word = emulate_byte(a);

	word |= emulate_byte(a) << 8;
	word |= emulate_byte(a) << 16;
	return (__s32)(word | (__u32)emulate_byte(a) << 24);
}

/* One-byte opcodes; from 0x100 on, those behind 0f. */
static __always_inline int emulate_has_modrm(__u32 op)
{
	if (op >= 0x200)
		return 1;
	if (op >= 0x100) {
		op &= 0xff;
		return !((op >= 0x04 && op <= 0x0b) || op == 0x0e || (op >= 0x30 && op <= 0x37) || op == 0x77 ||
			 (op >= 0x80 && op <= 0x8f) || (op >= 0xa0 && op <= 0xa2) || (op >= 0xa8 && op <= 0xaa) ||
			 (op >= 0xc8 && op <= 0xcf));
	}
	if (op < 0x40)
		return !(op & 4);
	if (op < 0x80)
		return op == 0x63 || op == 0x69 || op == 0x6b;
	return op < 0x90 || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op <= 0xd3) ||
	       (op >= 0xd8 && op <= 0xdf) || op == 0xf6 || op == 0xf7 || op >= 0xfe;
}

/* Number of immediate operand bytes that follow. `word`: the size of an operand of 4 bytes, 2 with a prefix. */
static __always_inline __u32 emulate_immediate(const struct walk_emulate *a, __u32 op, __u32 word)
{
	if (op >= 0x300)
		return 1;
	if (op >= 0x200)
		return 0;
	if (op >= 0x100) {
		op &= 0xff;
		if (op >= 0x80 && op <= 0x8f)
			return 4;
		return (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 || (op >= 0xc4 && op <= 0xc6);
	}
	if (op < 0x40)
		return (op & 7) == 4 ? 1 : (op & 7) == 5 ? word : 0;
	if (op == 0x68 || op == 0x69 || op == 0x81 || op == 0xa9 || op == 0xc7)
		return word;
	if (op >= 0xb8 && op <= 0xbf)
		return a->rex & 8 ? 8 : word;
	if (op == 0xe8 || op == 0xe9)
		return 4;
	if (op == 0xf6)
		return !(a->modrm & 0x30);
	if (op == 0xf7)
		return a->modrm & 0x30 ? 0 : word;
	return op == 0x6a || op == 0x6b || (op >= 0x70 && op <= 0x7f) || op == 0x80 || op == 0x83 || op == 0xa8 ||
		       (op >= 0xb0 && op <= 0xb7) || op == 0xc0 || op == 0xc1 || op == 0xc6 || (op >= 0xe0 && op <= 0xe7) || op == 0xeb
		   ? 1
	       : op == 0xc2 ? 2
			    : 0;
}

static __always_inline int is_emulated_prefix(__u8 byte)
{
	return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0xf0 || byte == 0x2e || byte == 0x3e || byte == 0x64 || byte == 0x65;
}

#define EMULATE_HELD_AGAIN 16
#define EMULATE_HELD_NONE 17

/* Start of the range that the bits of walk_code.lines cover, around `pc`. */
static __always_inline __u64 emulate_lines_pc(__u64 pc)
{
	return (pc / WALK_LINE_BYTES - WALK_LINES_BEFORE) * WALK_LINE_BYTES;
}

/* Marks the lines that a->code covers. `off`: where the code is in the range that the bits cover. 0, or -1: outside it. */
static __always_inline int emulate_note_lines_of(struct walk_emulate *a, __u32 place, __u64 off)
{
	__u64 lines;

	if (off >= 64 * WALK_LINE_BYTES - sizeof(a->code))
		return -1;
	lines = 1ULL << off / WALK_LINE_BYTES | 1ULL << (off + sizeof(a->code) - 1) / WALK_LINE_BYTES;
	a->now.lines[place] |= lines;
	a->looked[place] |= lines;
	return 0;
}

/* 0, or -1: the lines have no bits, as they are near neither of the two locations. */
static __always_inline int emulate_note_lines(struct walk *w, __u64 pc)
{
	struct walk_emulate *a = &w->emulation;

	if (!emulate_note_lines_of(a, 0, pc - emulate_lines_pc(w->pc)))
		return 0;
	if (!a->far_pc)
		a->far_pc = pc;
	return emulate_note_lines_of(a, 1, pc - emulate_lines_pc(a->far_pc));
}

/* Adds a line of code to a hash. A line that cannot be read counts as zeros. */
WALK_FUNCTION __u64 emulate_hash_line(WALK_REF ref, __u64 hash, __u64 pc)
{
	struct walk *w = walk_of(ref);

	if (!w)
		return hash;
	w->nr_looks++;
	(void)read_user(w, w->emulation.line, WALK_LINE_BYTES, pc);
	WALK_UNROLLED
	for (__u32 i = 0; i < WALK_LINE_BYTES / 8; i++)
		hash = hash_step(hash, w->emulation.line[i]);
	return hash;
}

#define EMULATE_FEW_LINES 8

/* Adds those of the first EMULATE_FEW_LINES lines from `pc` on that have a bit. */
WALK_FUNCTION __u64 emulate_hash_few(WALK_REF ref, __u64 hash, __u64 lines, __u64 pc)
{
	for (__u32 line = 0; line < EMULATE_FEW_LINES; line++) {
		if (lines >> line & 1)
			hash = emulate_hash_line(ref, hash, pc + line * WALK_LINE_BYTES);
	}
	return hash;
}

/* Adds all lines around `pc` that have a bit. */
WALK_FUNCTION __u64 emulate_hash_lines(WALK_REF ref, __u64 hash, __u64 lines, __u64 pc)
{
	hash = hash_step(hash, lines);
	for (__u32 line = 0; line < 64; line += EMULATE_FEW_LINES)
		hash = emulate_hash_few(ref, hash, lines >> line, emulate_lines_pc(pc) + line * WALK_LINE_BYTES);
	return hash;
}

static __always_inline __u64 emulate_hash(struct walk *w, const struct walk_code *code)
{
	__u64 hash = code->lines[0] ? emulate_hash_lines(ref_of(w), 0, code->lines[0], w->pc) : 0;

	return code->lines[1] ? emulate_hash_lines(ref_of(w), hash, code->lines[1], code->far_pc) : hash;
}

/* Reads the instruction at a->now.pc up to its opcode. 0, or -1: not an instruction, or one that no compiler uses. */
WALK_FUNCTION int emulate_opcode(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct walk_emulate *a = w ? &w->emulation : 0;
	__u32 op, map = 0;

	if (!a)
		return -1;
	w->nr_looks++;
	if (emulate_note_lines(w, a->now.pc))
		return -1;
	if (read_user(w, a->code, sizeof(a->code), a->now.pc)) {
		a->result = a->now.pc == w->pc ? EMULATE_NO_CODE : 0;
		return -1;
	}
	a->at = 0;
	a->rex = a->is_vector = a->is_short = 0;
	op = emulate_byte(a);
	WALK_UNROLLED
	for (__u32 step = 0; step < 4; step++) {
		if (is_emulated_prefix(op)) {
			a->is_short |= op == 0x66;
			op = emulate_byte(a);
		}
	}
	if ((op & 0xf0) == 0x40) {
		a->rex = op;
		op = emulate_byte(a);
	}
	if (op == 0x0f) {
		map = 1;
		op = emulate_byte(a);
		if (op == 0x38 || op == 0x3a) {
			map = op == 0x38 ? 2 : 3;
			op = emulate_byte(a);
		}
	} else if (op == 0xc5 || op == 0xc4 || op == 0x62) { /* VEX, EVEX; their register bits are inverted */
		__u32 first = emulate_byte(a), second = op == 0xc5 ? first : emulate_byte(a);

		map = op == 0xc5 ? 1 : first & 7;
		if (!map || map > 3)
			return -1;
		a->is_vector = 1;
		a->rex = (~first >> 5 & 4) | (op == 0xc5 ? 0 : ~first >> 5 & 1);
		a->vvvv = ~second >> 3 & 15;
		a->at += op == 0x62;
		op = emulate_byte(a);
	}
	a->op = map << 8 | op;
	return 0;
}

/* Reads the operands and moves a->now.pc behind the instruction. */
WALK_FUNCTION int emulate_operands(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct walk_emulate *a = w ? &w->emulation : 0;
	__u32 mod, size;

	if (!a)
		return -1;
	a->has_modrm = emulate_has_modrm(a->op);
	a->disp = a->imm = 0;
	a->modrm = a->sib = 0;
	if (a->has_modrm) {
		a->modrm = emulate_byte(a);
		mod = a->modrm >> 6;
		if (mod != 3 && (a->modrm & 7) == 4)
			a->sib = emulate_byte(a);
		if (mod == 1)
			a->disp = (__s8)emulate_byte(a);
		else if (mod == 2 || (!mod && ((a->modrm & 7) == 5 || ((a->modrm & 7) == 4 && (a->sib & 7) == 5))))
			a->disp = emulate_word(a);
		if ((mod == 1 || mod == 2) && (a->modrm & 7) == 5 && !(a->rex & 1) && !a->is_vector)
			a->uses_bp |= a->now.bp_is == EMULATE_BP_KEPT && !a->now.is_from_bp;
	}
	size = emulate_immediate(a, a->op, a->is_short && !(a->rex & 8) ? 2 : 4);
	if (size == 1) {
		a->imm = (__s8)emulate_byte(a);
	} else if (size) {
		a->imm = emulate_word(a);
		a->at += size - 4;
	}
	if (a->at > 15)
		return -1;
	a->now.pc += a->at;
	return 0;
}

static __always_inline int is_emulated_register(const struct walk_emulate *a)
{
	return a->modrm >= 0xc0;
}

static __always_inline __u32 emulate_reg(const struct walk_emulate *a)
{
	return (a->modrm >> 3 & 7) | (a->rex & 4) << 1;
}

static __always_inline __u32 emulate_rm(const struct walk_emulate *a)
{
	return (a->modrm & 7) | (a->rex & 1) << 3;
}

/* [rsp + disp], without an index */
static __always_inline int is_emulated_on_sp(const struct walk_emulate *a)
{
	return !is_emulated_register(a) && (a->modrm & 7) == 4 && a->sib == 0x24 && !(a->rex & 3);
}

static __always_inline void emulate_sp_from_bp(struct walk_emulate *a, __s64 off)
{
	a->now.is_sp_known = a->now.bp_is == EMULATE_BP_KEPT || a->now.bp_is == EMULATE_BP_FRAME;
	if (a->now.bp_is == EMULATE_BP_KEPT) {
		a->now.sp = off;
		a->now.is_from_bp = 1;
		a->now.saved_bp = EMULATE_NOT_SAVED;
	} else {
		a->now.sp = a->now.bp + off;
	}
	a->now.has_raised = 1;
}

static __always_inline void emulate_bp_from_slot(struct walk_emulate *a, __s64 off)
{
	if (!a->now.is_sp_known) {
		a->now.bp_is = EMULATE_BP_ANY;
	} else if (a->now.saved_bp != EMULATE_NOT_SAVED && a->now.saved_bp == off) {
		a->now.bp_is = EMULATE_BP_KEPT;
	} else {
		a->now.bp_is = off >= 0 ? EMULATE_BP_SLOT : EMULATE_BP_ANY;
		a->now.bp = off;
	}
}

/* The instruction writes a register. */
static __always_inline void emulate_write(struct walk_emulate *a, __u32 reg)
{
	if (reg == EMULATE_REG_SP)
		a->now.is_sp_known = 0;
	if (reg == EMULATE_REG_BP)
		a->now.bp_is = EMULATE_BP_ANY;
}

static __always_inline void emulate_push(struct walk_emulate *a, __s64 bytes)
{
	a->now.sp -= bytes;
	a->now.has_dx = 0;
	/* For a call: the callee may drop it or not. Or this is another function already. */
	if (a->has_called)
		a->now.is_unsure = 1;
}

static __always_inline void emulate_pop(struct walk_emulate *a, __u32 reg)
{
	emulate_write(a, reg);
	a->now.has_dx = 0;
	if (reg == EMULATE_REG_SP || !a->now.is_sp_known)
		return;
	a->now.held = reg;
	a->now.held_ret = a->now.sp;
	a->now.has_dx = reg == EMULATE_REG_DX;
}

/* mov and lea that move sp and rbp. */
WALK_FUNCTION int emulate_move(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct walk_emulate *a = w ? &w->emulation : 0;
	__u32 to, from;
	int to_rm;
	__s64 off;

	if (!a)
		return -1;
	to_rm = a->op == 0x89;
	to = to_rm ? emulate_rm(a) : emulate_reg(a);
	from = to_rm ? emulate_reg(a) : emulate_rm(a);
	off = a->now.sp + a->disp;
	if (a->op == 0x8d) {
		if (to == EMULATE_REG_SP && is_emulated_on_sp(a)) {
			a->now.has_raised = a->disp > 0;
			if (a->disp < 0)
				emulate_push(a, -(__s64)a->disp);
			else
				a->now.sp = off;
		} else if (to == EMULATE_REG_SP && (a->modrm & 0xc7) != 5 && emulate_rm(a) == EMULATE_REG_BP) {
			emulate_sp_from_bp(a, a->disp);
		} else if (to == EMULATE_REG_BP && is_emulated_on_sp(a) && a->now.is_sp_known && !a->now.is_from_bp) {
			a->now.bp_is = EMULATE_BP_FRAME;
			a->now.bp = off;
		} else {
			emulate_write(a, to);
		}
	} else if (is_emulated_register(a)) {
		if (to == EMULATE_REG_SP && from == EMULATE_REG_BP) {
			emulate_sp_from_bp(a, 0);
		} else if (to == EMULATE_REG_BP && from == EMULATE_REG_SP && a->now.is_sp_known && !a->now.is_from_bp) {
			a->now.bp_is = EMULATE_BP_FRAME;
			a->now.bp = a->now.sp;
		} else {
			emulate_write(a, to);
		}
	} else if (to_rm) {
		if (emulate_reg(a) == EMULATE_REG_BP && a->now.bp_is == EMULATE_BP_KEPT && a->now.is_sp_known && !a->now.is_from_bp &&
		    is_emulated_on_sp(a))
			a->now.saved_bp = off;
	} else if (to == EMULATE_REG_BP && is_emulated_on_sp(a)) {
		emulate_bp_from_slot(a, off);
	} else if (to == EMULATE_REG_BP && emulate_rm(a) == EMULATE_REG_BP && a->modrm >> 6 == 1 && !a->disp &&
		   a->now.bp_is == EMULATE_BP_KEPT) {
		a->now.bp_is = EMULATE_BP_LINK;
	} else {
		emulate_write(a, to);
	}
	return 0;
}

/* VEX and EVEX: those that write general registers. */
static __always_inline void emulate_vector(struct walk_emulate *a, __u32 op)
{
	if ((op & ~0xfu) == 0x2f0) { /* the bit manipulation instructions */
		emulate_write(a, emulate_reg(a));
		emulate_write(a, a->vvvv);
	} else if (op == 0x12c || op == 0x12d || op == 0x150 || op == 0x178 || op == 0x179 || op == 0x193 || op == 0x1c5 || op == 0x1d7 ||
		   op == 0x3f0) {
		emulate_write(a, emulate_reg(a));
	} else if ((op == 0x17e || (op & ~3u) == 0x314) && is_emulated_register(a)) {
		emulate_write(a, emulate_rm(a));
	}
}

/* All other instructions that write registers. */
WALK_FUNCTION int emulate_other(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct walk_emulate *a = w ? &w->emulation : 0;
	__u32 op;

	if (!a)
		return -1;
	op = a->op;
	if (op == 0x81 || op == 0x83) {
		__u32 which = a->modrm >> 3 & 7;

		if (!is_emulated_register(a) || which == 7)
			return 0;
		if (emulate_rm(a) == EMULATE_REG_SP && (which == 0 || which == 5)) {
			__s64 more = which ? -(__s64)a->imm : a->imm;

			a->now.has_raised = more > 0;
			if (more < 0)
				emulate_push(a, -more);
			else
				a->now.sp += more;
		} else {
			emulate_write(a, emulate_rm(a));
		}
	} else if (op >= 0xb8 && op <= 0xbf) {
		emulate_write(a, (op & 7) | (a->rex & 1) << 3);
	} else if (op >= 0x91 && op <= 0x97) {
		emulate_write(a, (op & 7) | (a->rex & 1) << 3);
	} else if (!a->has_modrm || (op >= 0x38 && op <= 0x3b) || op == 0x84 || op == 0x85 || (op >= 0xd8 && op <= 0xdf) || op == 0x88 ||
		   op == 0x8a) {
		return 0;
	} else if (op == 0x80 || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op <= 0xd3) || op == 0xf6 ||
		   op == 0xf7 || op == 0xfe || op == 0xff) {
		if (is_emulated_register(a) && ((op & 1) || a->rex) &&
		    !((op & 0xfe) == 0xf6 && (a->modrm & 0x30) != 0x10)) /* test, mul and div do not write it */
			emulate_write(a, emulate_rm(a));
	} else if (op < 0x100) {
		if (is_emulated_register(a))
			emulate_write(a, emulate_rm(a));
		emulate_write(a, emulate_reg(a));
	} else if (a->is_vector) {
		emulate_vector(a, op);
	} else if ((op >= 0x190 && op <= 0x19f) || op == 0x1ba || op == 0x1c7) { /* with one operand */
		if (is_emulated_register(a))
			emulate_write(a, emulate_rm(a));
	} else if (op == 0x12c || op == 0x12d || (op >= 0x140 && op <= 0x150) || op == 0x17e ||
		   (op >= 0x1a3 && op <= 0x1c1 && op != 0x1ae) || op == 0x1c5 || op == 0x1d7 || (op >= 0x2f0 && op <= 0x2ff)) {
		if (is_emulated_register(a))
			emulate_write(a, emulate_rm(a));
		emulate_write(a, emulate_reg(a));
	}
	return 0;
}

/* The index of the picked exit goes through memory (volatile), as above. */
static __always_inline void emulate_pick(struct walk_emulate *a, __u32 i)
{
	*(volatile __u32 *)&a->picked = i;
}

static __always_inline struct walk_emulate_state *emulate_picked(struct walk_emulate *a)
{
	__u32 i = *(volatile __u32 *)&a->picked;

	return i < EMULATE_EXITS ? &a->exits[i & (EMULATE_EXITS - 1)] : 0;
}

static __always_inline __u64 emulate_distance(__u64 here, __u64 pc)
{
	return pc > here ? pc - here : here - pc;
}

/* Continues at the nearest exit, at a dead end. A far exit usually leads to error handling. 0, or -1: there is none. */
static __always_inline int emulate_exit(struct walk_emulate *a)
{
	__u64 here = a->now.pc, nearest = -1ULL;
	struct walk_emulate_state *exit;

	emulate_pick(a, EMULATE_EXITS);
	WALK_UNROLLED
	for (__u32 i = 0; i < EMULATE_EXITS; i++) {
		__u64 pc = a->exits[i].pc, distance = emulate_distance(here, pc);

		if (pc && distance < nearest) {
			nearest = distance;
			emulate_pick(a, i);
		}
	}
	exit = emulate_picked(a);
	if (!exit)
		return -1;
	a->now = *exit; /* removed from the list when its instruction is reached */
	return 0;
}

static __always_inline int is_emulated_seen(const struct walk_emulate *a, __u64 pc)
{
	__u32 at = pc / 64 & (EMULATE_SEEN_BITS / 64 - 1);

	return (a->seen[0][at] | (a->now.is_unsure ? a->seen[1][at] : 0)) >> (pc & 63) & 1;
}

/* Keeps the target of a conditional jump. If there is no room, drops the farthest one: it would be taken last. */
WALK_FUNCTION int emulate_branch(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct walk_emulate *a = w ? &w->emulation : 0;
	__u64 here, target;
	struct walk_emulate_state *exit;

	if (!a)
		return -1;
	here = a->now.pc;
	target = here + (__u64)(__s64)a->imm;
	if (is_emulated_seen(a, target))
		return 0;
	emulate_pick(a, EMULATE_EXITS);
	a->farthest = emulate_distance(here, target);
	WALK_UNROLLED
	for (__u32 i = 0; i < EMULATE_EXITS; i++) {
		__u64 pc = a->exits[i].pc, distance = pc ? emulate_distance(here, pc) : -1ULL;

		if (pc == target && !a->exits[i].is_unsure)
			return 0;
		if (distance > *(volatile __u64 *)&a->farthest) { /* as above */
			*(volatile __u64 *)&a->farthest = distance;
			emulate_pick(a, i);
		}
	}
	exit = emulate_picked(a);
	if (!exit)
		return 0;
	*exit = a->now;
	exit->pc = target;
	a->exit_bits |= 1ULL << (target & 63);
	return 0;
}

/* Two paths meet here. The shorter one knows more, as it has not the calls of the longer one. */
WALK_FUNCTION int emulate_meet(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct walk_emulate *a = w ? &w->emulation : 0;
	struct walk_emulate_state *exit;
	__u64 here;

	if (!a)
		return -1;
	here = a->now.pc;
	emulate_pick(a, EMULATE_EXITS);
	WALK_UNROLLED
	for (__u32 i = 0; i < EMULATE_EXITS; i++) {
		if (a->exits[i].pc == here)
			emulate_pick(a, i);
	}
	exit = emulate_picked(a);
	if (exit) {
		a->now = *exit;
		exit->pc = 0;
	}
	return 0;
}

/* 0, or -1: this instruction was reached before. */
static __always_inline int emulate_come(struct walk *w)
{
	struct walk_emulate *a = &w->emulation;
	__u64 here = a->now.pc;

	if (a->exit_bits >> (here & 63) & 1)
		emulate_meet(ref_of(w));
	if (is_emulated_seen(a, here))
		return -1;
	a->seen[a->now.is_unsure & 1][here / 64 & (EMULATE_SEEN_BITS / 64 - 1)] |= 1ULL << (here & 63);
	return 0;
}

/* Does the instruction write rsp and no other register? V8 drops arguments this way: pop %rcx; add %rbx,%rsp; push %rcx; ret. */
static __always_inline int is_emulated_of_sp_alone(const struct walk_emulate *a)
{
	if (a->op == 0x8d || a->op == 0x03)
		return emulate_reg(a) == EMULATE_REG_SP;
	return (a->op == 0x01 || a->op == 0x81 || a->op == 0x83) && is_emulated_register(a) && emulate_rm(a) == EMULATE_REG_SP;
}

/* The function returns: its frame as a number, see EMULATE_FOUND. 0: not known. */
static __always_inline __u32 emulate_result(const struct walk_emulate *a)
{
	__s64 ret = a->now.held == EMULATE_HELD_AGAIN ? a->now.held_ret : a->now.sp, up = ret - a->now.bp;

	if ((!a->now.is_sp_known && a->now.held != EMULATE_HELD_AGAIN) || ret < 0 || ret > EMULATE_MAX_OFF || ret & 7 ||
	    a->now.is_behind_call)
		return 0;
	if (!a->now.is_from_bp && (a->now.is_unsure || a->op == 0xc2))
		return 0;
	if (a->now.bp_is == EMULATE_BP_KEPT)
		return a->now.is_from_bp ? 0 : EMULATE_FOUND | (__u32)(ret / 8) << EMULATE_RET_SHIFT;
	if (a->now.bp_is == EMULATE_BP_LINK)
		return a->now.is_from_bp
			   ? 0
			   : EMULATE_FOUND | EMULATE_IF_LINKED | (__u32)(ret / 8) << EMULATE_RET_SHIFT | 1 << EMULATE_SLOT_SHIFT;
	if (a->now.bp_is != EMULATE_BP_SLOT || up <= 0 || up > EMULATE_MAX_OFF || up & 7)
		return 0;
	return EMULATE_FOUND | (a->now.is_from_bp ? EMULATE_BY_BP : 0) | (__u32)(ret / 8) << EMULATE_RET_SHIFT |
	       (__u32)(up / 8) << EMULATE_SLOT_SHIFT;
}

/* Is this a typical first instruction of a function? */
static __always_inline int is_emulated_begin(const struct walk_emulate *a)
{
	return (a->op >= 0x50 && a->op <= 0x57) || ((a->op == 0x81 || a->op == 0x83) && a->modrm == 0xec) ||
	       (a->op == 0x89 && is_emulated_on_sp(a) && a->disp < 0);
}

/* Is this indirect jump, after sp was raised, the function's last instruction? A function may also jump in its middle, with a part of its
 * frame already released. At its end it has restored the caller's rbp, or jumps through its own memory cell as stubs do, or has a prefix
 * with no other use (.NET's, as Windows requires). */
static __always_inline int is_emulated_tail_jump(const struct walk_emulate *a)
{
	return a->now.bp_is == EMULATE_BP_SLOT || a->now.bp_is == EMULATE_BP_LINK || a->modrm == 0x25 || a->rex & 8;
}

/* Does this indirect jump return, to an address that was popped? */
static __always_inline int is_emulated_popped_jump(const struct walk_emulate *a)
{
	return (is_emulated_register(a) && a->now.held == emulate_rm(a)) ||
	       (a->returns_in_dx && a->now.has_dx && a->now.is_sp_known && a->now.sp == a->now.held_ret + 8);
}

/* Does this instruction leave the function, so that the stack shows its caller? */
static __always_inline int is_emulated_end(struct walk_emulate *a, int had_raised)
{
	if (a->op == 0xc3 || a->op == 0xc2 || (a->now.has_left && is_emulated_begin(a)))
		return 1;
	if (a->op != 0xff || (a->modrm >> 3 & 7) != 4)
		return 0;
	if (is_emulated_popped_jump(a)) {
		a->now.held = EMULATE_HELD_AGAIN;
		return 1;
	}
	return had_raised && is_emulated_tail_jump(a); /* to a function that returns for it */
}

WALK_FUNCTION int emulate_dead_end(WALK_REF ref)
{
	struct walk *w = walk_of(ref);

	return !w || emulate_exit(&w->emulation) ? WALK_ENDED : WALK_GOES_ON;
}

/* Emulates one instruction. WALK_GOES_ON, or WALK_ENDED with a->result. */
WALK_FUNCTION int emulate_step(WALK_REF ref)
{
	struct walk *w = walk_of(ref);
	struct walk_emulate *a = w ? &w->emulation : 0;
	__u32 op, held;
	int had_raised;

	if (!a)
		return WALK_ENDED;
	if (emulate_come(w) || emulate_opcode(ref_of(w)) || emulate_operands(ref_of(w)))
		return emulate_dead_end(ref_of(w));
	op = a->op;
	had_raised = a->now.has_raised;
	a->now.is_behind_call &= !had_raised;
	a->now.has_raised = 0;
	if (is_emulated_end(a, had_raised)) {
		a->result = emulate_result(a);
		if (a->result && a->now.has_jumped)
			a->result |= EMULATE_JUMPED;
		return a->result ? WALK_ENDED : emulate_dead_end(ref_of(w));
	}
	a->now.has_left = 0;
	held = a->now.held;
	if (held == EMULATE_HELD_AGAIN || !is_emulated_of_sp_alone(a))
		a->now.held = EMULATE_HELD_NONE;
	if (op == 0xe9 || op == 0xeb) {
		a->now.pc += (__u64)(__s64)a->imm;
		a->now.has_jumped |= a->has_called && a->now.sp <= 0; /* what was pushed for the call is not part of the frame */
		a->now.has_raised = had_raised;
		a->now.has_left = had_raised && a->now.bp_is == EMULATE_BP_SLOT;
		return WALK_GOES_ON;
	}
	if (op == 0xcc || op == 0xf4 || op == 0xcd || op == 0xce || op == 0xcf || op == 0xf1 || op == 0x10b || op == 0x105 || op == 0xc8 ||
	    op == 0xca || op == 0xcb || (op >= 0xa0 && op <= 0xa3) || op == 0x9a || op == 0x9c || op == 0x9d ||
	    (op == 0x8f && is_emulated_register(a)) || (op == 0xff && (a->modrm >> 3 & 7) >= 3 && (a->modrm >> 3 & 7) != 6))
		return emulate_dead_end(ref_of(w));
	if ((op >= 0x70 && op <= 0x7f) || (op >= 0x180 && op <= 0x18f) || (op >= 0xe0 && op <= 0xe3)) {
		emulate_branch(ref_of(w));
	} else if (op == 0xe8 || (op == 0xff && (a->modrm >> 3 & 7) == 2)) {
		a->has_called = a->now.is_behind_call = 1;
	} else if (op >= 0x50 && op <= 0x57) {
		emulate_push(a, 8);
		if (held == ((op & 7) | (a->rex & 1) << 3))
			a->now.held = EMULATE_HELD_AGAIN;
		if (op == 0x55 && !(a->rex & 1) && a->now.bp_is == EMULATE_BP_KEPT && a->now.is_sp_known && !a->now.is_from_bp)
			a->now.saved_bp = a->now.sp;
	} else if (op >= 0x58 && op <= 0x5f) {
		if (op == 0x5d && !(a->rex & 1))
			emulate_bp_from_slot(a, a->now.sp);
		else
			emulate_pop(a, (op & 7) | (a->rex & 1) << 3);
		a->now.sp += 8;
		a->now.has_raised = 1;
	} else if (op == 0x8f) {
		a->now.sp += 8;
	} else if (op == 0x68 || op == 0x6a || (op == 0xff && (a->modrm >> 3 & 7) == 6)) {
		emulate_push(a, 8);
	} else if (op == 0xc9) {
		emulate_sp_from_bp(a, 0);
		emulate_bp_from_slot(a, a->now.sp);
		a->now.sp += 8;
	} else if (op == 0x89 || op == 0x8b || op == 0x8d) {
		emulate_move(ref_of(w));
	} else {
		emulate_other(ref_of(w));
	}
	return WALK_GOES_ON;
}

#define EMULATE_FEW 32
#define EMULATE_MAX_INSTRUCTIONS (32 * EMULATE_FEW)

WALK_FUNCTION int emulate_few(WALK_REF ref)
{
	for (int i = 0; i < EMULATE_FEW; i++) {
		if (emulate_step(ref))
			return WALK_ENDED;
	}
	return WALK_GOES_ON;
}

WALK_FUNCTION int emulate_start(WALK_REF ref, __u64 pc, int has_called)
{
	struct walk *w = walk_of(ref);
	struct walk_emulate *a = w ? &w->emulation : 0;

	if (!a)
		return WALK_ENDED;
	a->now = (struct walk_emulate_state){ .pc = pc,
					      .is_sp_known = 1,
					      .bp_is = EMULATE_BP_KEPT,
					      .saved_bp = EMULATE_NOT_SAVED,
					      .is_behind_call = has_called,
					      .held = EMULATE_HELD_NONE };
	WALK_UNROLLED
	for (__u32 i = 0; i < EMULATE_EXITS; i++)
		a->exits[i].pc = 0;
	for (__u32 i = 0; i < EMULATE_SEEN_BITS / 64; i += 16) {
		__builtin_memset(&a->seen[0][i], 0, 128);
		__builtin_memset(&a->seen[1][i], 0, 128);
		__asm__ volatile("" ::: "memory"); /* else clang merges them into one, and cannot do that many bytes at once */
	}
	a->result = 0;
	a->looked[0] = a->looked[1] = a->far_pc = a->exit_bits = 0;
	a->has_called = has_called;
	a->uses_bp = 0;
	a->deepest = 0;
	return WALK_GOES_ON;
}

/* What the code from w->pc on says about its frame; 0: nothing. */
WALK_FUNCTION __u32 emulate_search(WALK_REF ref)
{
	struct walk *w = walk_of(ref);

	if (!w || emulate_start(ref_of(w), w->pc, !w->exact))
		return 0;
	for (int i = 0; i < EMULATE_MAX_INSTRUCTIONS / EMULATE_FEW; i++) {
		if (emulate_few(ref_of(w)))
			break;
	}
	return w->emulation.result;
}

/* emulate_search with a cache. A result holds while the lines on the path that led to it are unchanged. "Nothing found" holds while all
 * lines that were read are unchanged. */
static __always_inline __u32 emulate_find(struct walk *w)
{
	__u64 frame = w->pc | (w->exact ? 0 : SONDE_FRAME_RETURN);
	struct walk_code *known = &w->codes[(frame * 0x9e3779b97f4a7c15ULL) >> (64 - WALK_CODE_SHIFT)];
	const struct walk_emulate *a = &w->emulation;
	const __u64 *lines;

	if (known->frame == frame && known->serial == w->serial && (known->walk == w->nr_walks || emulate_hash(w, known) == known->hash)) {
		known->walk = w->nr_walks;
		w->emulation.uses_bp = !!known->uses_bp;
		return known->found;
	}
	known->found = emulate_search(ref_of(w));
	known->uses_bp = a->uses_bp;
	known->frame = frame;
	known->serial = w->serial;
	known->walk = w->nr_walks;
	known->far_pc = a->far_pc;
	lines = known->found & EMULATE_FOUND ? a->now.lines : a->looked;
	known->lines[0] = lines[0];
	known->lines[1] = lines[1];
	if (is_fixed(w, frame))
		known->lines[0] = known->lines[1] = 0;
	known->hash = emulate_hash(w, known);
	return known->found;
}

#define EMULATE_MAX_PROLOGUE 32

WALK_FUNCTION int emulate_prologue_step(WALK_REF ref)
{
	struct walk *w = walk_of(ref);

	if (!w || emulate_step(ref_of(w)) || w->emulation.has_called || !w->emulation.now.is_sp_known)
		return WALK_ENDED;
	if (w->emulation.now.sp < w->emulation.deepest)
		w->emulation.deepest = w->emulation.now.sp;
	return WALK_GOES_ON;
}

/* Can the function that is called before `ret` have a frame of `bytes`? A call that does not return may be the last instruction of a
 * function or of its cold part. The code after it then belongs to another function: a cold part that jumps back into a frame of another
 * size. Following that code leads to what an earlier call left on the stack, or to a caller's caller. What the called function pushes
 * before its first call decides. */
WALK_FUNCTION int emulate_fits(WALK_REF ref, __u64 ret, __u64 bytes)
{
	struct walk *w = walk_of(ref);
	__u8 call[8] = {};
	__u64 deepest;

	if (!w || read_user(w, call, 5, ret - 5) || call[0] != 0xe8)
		return 1;
	emulate_start(ref_of(w), ret + (__u64)(__s64)(__s32)(call[1] | call[2] << 8 | call[3] << 16 | (__u32)call[4] << 24), 0);
	for (int i = 0; i < EMULATE_MAX_PROLOGUE; i++) {
		if (emulate_prologue_step(ref_of(w)))
			break;
	}
	deepest = -(__u64)w->emulation.deepest;
	if (!w->emulation.now.is_sp_known || (!deepest && !w->emulation.result)) /* ... or a stub */
		return 1;
	return w->exact ? bytes <= deepest : bytes == deepest; /* pc may be at its beginning or its end */
}

/* Moves to the caller if the code from w->pc on proves where it is. */
static __always_inline int walk_emulate(struct walk *w)
{
	__u32 found = emulate_find(w);
	__u64 ret, at, bp;

	if (!(found & EMULATE_FOUND))
		return found & EMULATE_NO_CODE ? EMULATE_WRONG : EMULATE_UNKNOWN;
	at = (found & EMULATE_BY_BP ? w->bp : w->sp) + (__u64)(found >> EMULATE_RET_SHIFT & EMULATE_OFF_MASK) * 8;
	bp = at - (__u64)(found >> EMULATE_SLOT_SHIFT & EMULATE_OFF_MASK) * 8;
	if (bp == w->bp && at == bp + 8)
		return EMULATE_LINKED;
	if (found & EMULATE_IF_LINKED)
		return EMULATE_UNKNOWN;
	if (at < w->sp || at - w->sp > WALK_MAX_FP_FRAME_BYTES || walk_peek(w, at, &ret) || !walk_is_return(ref_of(w), ret))
		return EMULATE_WRONG;
	if (ret == w->pc &&
	    is_linked(w)) /* the code aligns its stack and has copied its return address below its rbp: sp is misleading */
		return EMULATE_WRONG;
	if ((found & (EMULATE_JUMPED | EMULATE_BY_BP)) == EMULATE_JUMPED && !emulate_fits(ref_of(w), ret, at - w->sp))
		return EMULATE_WRONG;
	if (at == bp)
		bp = w->bp;
	else if (walk_peek(w, bp, &bp))
		return EMULATE_WRONG;
	w->pc = ret;
	w->sp = at + 8;
	w->bp = bp;
	w->exact = 0;
	return EMULATE_MOVED;
}

static __always_inline int walk_uses_bp(struct walk *w)
{
	return w->emulation.uses_bp;
}
