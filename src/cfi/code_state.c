// SPDX-License-Identifier: Apache-2.0
#include "cfi/code_state.h"

#include <string.h>

#define MAX_FRAME_BYTES (16 << 20)
#define REX_W 8
#define NR_CLONE  56 /* system calls of x86-64 */
#define NR_CLONE3 435

static const struct code_value nothing = { .kind = CODE_ANY };

struct code_state code_state_at_begin(bool is_outermost)
{
	struct code_state state = { .is_outermost = is_outermost };

	if (!is_outermost) {
		state.regs[X86_CODE_SP] = (struct code_value){ CODE_CFA, -8 };
		state.regs[X86_CODE_BP].kind = CODE_BP;
		state.regs[X86_CODE_BX].kind = CODE_BX;
	}
	return state;
}

static bool is_equal(struct code_value a, struct code_value b)
{
	return a.kind == b.kind && a.off == b.off;
}

static bool is_on_stack(struct code_value value)
{
	return value.kind == CODE_CFA || value.kind == CODE_ALIGNED;
}

bool code_state_is_at_begin(const struct code_state *state)
{
	return !state->is_outermost && is_equal(state->regs[X86_CODE_SP], (struct code_value){ CODE_CFA, -8 }) &&
	       (state->is_managed || (state->regs[X86_CODE_BP].kind == CODE_BP && state->regs[X86_CODE_BX].kind == CODE_BX));
}

static void drop_slot(struct code_state *state, size_t i)
{
	for (; i + 1 < CODE_NR_SLOTS; i++)
		state->slots[i] = state->slots[i + 1];
	memset(&state->slots[i], 0, sizeof(state->slots[i]));
}

bool code_state_meet(struct code_state *state, const struct code_state *other)
{
	struct code_value sp = state->regs[X86_CODE_SP], other_sp = other->regs[X86_CODE_SP], bp = state->regs[X86_CODE_BP];

	if (state->is_outermost != other->is_outermost)
		return false;
	if (sp.kind == CODE_CFA && other_sp.kind == CODE_CFA && sp.off != other_sp.off &&
	    !(is_on_stack(bp) && is_equal(bp, other->regs[X86_CODE_BP])))
		return false; /* else sp is not known, but the frame pointer is */
	for (size_t i = 0; i < 16; i++) {
		if (!is_equal(state->regs[i], other->regs[i]))
			state->regs[i] = nothing;
	}
	for (size_t i = 0; i < CODE_NR_SLOTS && state->slots[i].value.kind;) {
		bool is_there = false;

		for (size_t j = 0; j < CODE_NR_SLOTS && !is_there; j++)
			is_there =
			    is_equal(state->slots[i].at, other->slots[j].at) && is_equal(state->slots[i].value, other->slots[j].value);
		if (is_there)
			i++;
		else
			drop_slot(state, i);
	}
	return true;
}

void code_state_call(struct code_state *state, bool is_known)
{
	static const uint8_t lost[] = { X86_CODE_AX, X86_CODE_CX, X86_CODE_DX, X86_CODE_SI, X86_CODE_DI, 8, 9, 10, 11 };
	struct code_value sp = state->regs[X86_CODE_SP];

	for (size_t i = 0; i < sizeof(lost); i++)
		state->regs[lost[i]] = nothing;
	for (uint8_t reg = 0; state->is_managed && reg < 16; reg++) {
		if (reg != X86_CODE_SP)
			state->regs[reg] = nothing;
	}
	for (size_t i = 0; i < CODE_NR_SLOTS && state->slots[i].value.kind;) { /* the call may have written there */
		if (state->slots[i].at.kind == sp.kind && state->slots[i].at.off < sp.off)
			drop_slot(state, i);
		else
			i++;
	}
	if (!is_known)
		state->regs[X86_CODE_SP] = nothing;
}

bool code_state_branch(struct code_state *state, const struct x86_code *code, bool is_taken)
{
	bool is_if_zero = (code->op & 15) == 4, is_if_other = (code->op & 15) == 5;

	if (state->regs[X86_CODE_AX].kind != CODE_TESTED)
		return false;
	state->regs[X86_CODE_AX].kind = (is_taken ? is_if_zero : is_if_other) ? CODE_CHILD : CODE_ANY;
	return true;
}

bool code_state_resets_sp(const struct x86_code *code)
{
	uint32_t op = code->op;
	uint8_t reg = x86_code_reg(code), rm = x86_code_rm(code);

	if (op == 0x8b || (op == 0x87 && reg == X86_CODE_SP))
		return reg == X86_CODE_SP;
	if (op == 0x8d)
		return reg == X86_CODE_SP && (rm != X86_CODE_SP || (code->sib & 7) != X86_CODE_SP || code->rex & 1);
	if (op == 0x89 || op == 0x87)
		return x86_code_is_register(code) && rm == X86_CODE_SP;
	return op == 0xc9 || (op == 0x5c && !(code->rex & 1));
}

/* The instruction being emulated. */
struct step {
	struct code_state *state;
	const struct x86_code *code;
	int64_t next;
	uint64_t vaddr;
	bool is_changed, is_contradicted;
};

static bool is_wide(const struct step *s) /* all 64 bits of a register */
{
	return s->code->rex & REX_W;
}

static void set_reg(struct step *s, uint8_t reg, struct code_value value)
{
	if (reg == X86_CODE_SP && value.kind == CODE_CFA && value.off > -8) { /* the return address is released */
		if (s->state->regs[X86_CODE_BP].kind == CODE_ZERO && s->state->regs[X86_CODE_AX].kind == CODE_CHILD) { /* of a new thread */
			*s->state = code_state_at_begin(true);
			s->is_changed = true;
		} else {
			s->is_contradicted = true;
		}
		return;
	}
	if (s->state->is_managed && value.kind >= CODE_PLACE) /* not needed there */
		value = nothing;
	if (is_equal(s->state->regs[reg], value))
		return;
	s->state->regs[reg] = value;
	s->is_changed = true;
}

static void lose(struct step *s, uint8_t reg)
{
	set_reg(s, reg, nothing);
}

static struct code_value moved(struct code_value value, int64_t by)
{
	int64_t off = value.off + by;

	if (!is_on_stack(value) || off > MAX_FRAME_BYTES || off < -MAX_FRAME_BYTES)
		return nothing;
	return (struct code_value){ value.kind, (int32_t)off };
}

static struct code_value place(const struct step *s, int64_t off)
{
	return off == (int32_t)off ? (struct code_value){ CODE_PLACE, (int32_t)off } : nothing;
}

/* Address of the memory operand. */
static struct code_value address(const struct step *s)
{
	const struct x86_code *code = s->code;
	uint8_t mod = code->modrm >> 6, rm = code->modrm & 7, base = x86_code_rm(code);

	if (code->is_32_address)
		return nothing;
	if (rm == 4) {
		if ((code->sib >> 3 & 7) != 4 || code->rex & 2 || (!mod && (code->sib & 7) == 5))
			return nothing;
		base = (uint8_t)((code->sib & 7) | (code->rex & 1) << 3);
	} else if (!mod && rm == 5) {
		return place(s, s->next + code->disp);
	}
	return moved(s->state->regs[base], code->disp);
}

static struct code_value load(const struct step *s, struct code_value at)
{
	if (is_on_stack(at)) {
		for (size_t i = 0; i < CODE_NR_SLOTS; i++) {
			if (s->state->slots[i].value.kind && is_equal(s->state->slots[i].at, at))
				return s->state->slots[i].value;
		}
	}
	return nothing;
}

static void store(struct step *s, struct code_value at, struct code_value value)
{
	struct code_slot *slots = s->state->slots;
	bool is_kept = value.kind == CODE_BP || value.kind == CODE_BX || value.kind == CODE_CFA;

	if (!is_on_stack(at))
		return;
	for (size_t i = 0; i < CODE_NR_SLOTS; i++) {
		if (!slots[i].value.kind && is_kept) {
			slots[i] = (struct code_slot){ at, value };
			s->is_changed = true;
			return;
		}
		if (!slots[i].value.kind || !is_equal(slots[i].at, at))
			continue;
		if (is_equal(slots[i].value, value))
			return;
		s->is_changed = true;
		drop_slot(s->state, i--);
	}
}

static void push(struct step *s, struct code_value value)
{
	set_reg(s, X86_CODE_SP, moved(s->state->regs[X86_CODE_SP], -8));
	store(s, s->state->regs[X86_CODE_SP], value);
}

static void raise(struct step *s, int64_t by)
{
	set_reg(s, X86_CODE_SP, moved(s->state->regs[X86_CODE_SP], by));
}

static void pop(struct step *s, uint8_t reg)
{
	struct code_value value = load(s, s->state->regs[X86_CODE_SP]);

	raise(s, 8);
	if (!s->state->is_outermost)
		set_reg(s, reg, value);
}

/* Rounds sp down. The distance is not known, so sp becomes a new base. */
static void align(struct step *s)
{
	for (uint8_t reg = 0; reg < 16; reg++) {
		if (s->state->regs[reg].kind == CODE_ALIGNED)
			lose(s, reg);
	}
	for (size_t i = 0; i < CODE_NR_SLOTS && s->state->slots[i].value.kind;) {
		if (s->state->slots[i].at.kind == CODE_ALIGNED)
			drop_slot(s->state, i);
		else
			i++;
	}
	set_reg(s, X86_CODE_SP, (struct code_value){ CODE_ALIGNED, 0 });
}

/* Byte registers: without a REX prefix, 4 to 7 are the second bytes of the first four. */
static uint8_t byte_reg(const struct step *s, uint8_t reg)
{
	return !s->code->has_rex && reg >= 4 && reg < 8 ? reg - 4 : reg;
}

static void lose_rm(struct step *s, bool is_byte)
{
	if (x86_code_is_register(s->code))
		lose(s, is_byte ? byte_reg(s, x86_code_rm(s->code)) : x86_code_rm(s->code));
}

static void step_mov(struct step *s)
{
	const struct x86_code *code = s->code;
	uint8_t reg = x86_code_reg(code), rm = x86_code_rm(code);

	if (code->op == 0x8d) {
		set_reg(s, reg, is_wide(s) ? address(s) : nothing);
	} else if (code->op == 0x89) {
		struct code_value value = is_wide(s) ? s->state->regs[reg] : nothing;

		if (x86_code_is_register(code))
			set_reg(s, rm, value);
		else
			store(s, address(s), value);
	} else if (!is_wide(s)) {
		lose(s, reg);
	} else {
		set_reg(s, reg, x86_code_is_register(code) ? s->state->regs[rm] : load(s, address(s)));
	}
}

/* add, or, adc, sbb, and, sub, xor, cmp with an immediate operand. */
static void step_immediate(struct step *s)
{
	uint8_t which = x86_code_extension(s->code), rm = x86_code_rm(s->code);

	if (!x86_code_is_register(s->code) || which == 7)
		return;
	if (s->code->op == 0x80)
		lose_rm(s, true);
	else if (is_wide(s) && (which == 0 || which == 5))
		set_reg(s, rm, moved(s->state->regs[rm], which ? -s->code->imm : s->code->imm));
	else if (is_wide(s) && which == 4 && rm == X86_CODE_SP && s->code->imm < 0)
		align(s);
	else
		lose(s, rm);
}

/* A number is written to rax, or to its lowest byte while the rest is zero. */
static void number(struct step *s, bool is_byte)
{
	bool is_whole = !is_byte || s->state->regs[X86_CODE_AX].kind == CODE_ZERO;
	bool is_clone = s->code->imm == NR_CLONE || (!is_byte && s->code->imm == NR_CLONE3);

	set_reg(s, X86_CODE_AX, is_whole && is_clone ? (struct code_value){ .kind = CODE_CLONE } : nothing);
}

/* The rest of the first map. By default both operands are written. */
static void step_one_byte(struct step *s)
{
	const struct x86_code *code = s->code;
	uint32_t op = code->op;
	bool is_byte = !(op & 1);

	if ((op == 0xb0 || op == 0xb8) && !(code->rex & 1)) {
		number(s, op == 0xb0);
	} else if (!code->has_modrm) {
		if (op >= 0xb8 && op <= 0xbf)
			set_reg(s, (uint8_t)((op & 7) | (code->rex & 1) << 3),
				code->imm > 0 ? place(s, code->imm - (int64_t)s->vaddr) : nothing);
		else if (op >= 0xb0 && op <= 0xb7)
			lose(s, byte_reg(s, (uint8_t)((op & 7) | (code->rex & 1) << 3)));
		else if (op >= 0x90 && op <= 0x97 && (op > 0x90 || code->rex & 1))
			lose(s, (uint8_t)((op & 7) | (code->rex & 1) << 3));
		/* string operations, sign extensions, ports: everything they may write */
		if (op != 0x90 && op != 0x3c && op != 0x3d && op != 0xa8 && op != 0xa9) {
			lose(s, X86_CODE_AX);
			lose(s, X86_CODE_CX);
			lose(s, X86_CODE_DX);
			lose(s, X86_CODE_SI);
			lose(s, X86_CODE_DI);
		}
	} else if ((op == 0x31 || op == 0x33) && x86_code_is_register(code) && x86_code_reg(code) == x86_code_rm(code)) {
		set_reg(s, x86_code_reg(code), (struct code_value){ .kind = CODE_ZERO });
	} else if ((op >= 0x38 && op <= 0x3b) || op == 0x84 || op == 0x85 || op == 0x8e || (op >= 0xd8 && op <= 0xde)) {
		return;
	} else if (op == 0xdf) {
		lose(s, X86_CODE_AX);
	} else if (op < 0x40) {
		if (op & 2)
			lose(s, is_byte ? byte_reg(s, x86_code_reg(code)) : x86_code_reg(code));
		else
			lose_rm(s, is_byte);
	} else if (op == 0x63 || op == 0x69 || op == 0x6b) {
		lose(s, x86_code_reg(code));
	} else if (op == 0x86 || op == 0x87) {
		lose_rm(s, is_byte);
		lose(s, is_byte ? byte_reg(s, x86_code_reg(code)) : x86_code_reg(code));
	} else if (op == 0x8a) {
		lose(s, byte_reg(s, x86_code_reg(code)));
	} else if (op == 0xf6 || op == 0xf7) {
		if (x86_code_extension(code) >= 2)
			lose_rm(s, is_byte);
		if (x86_code_extension(code) >= 4) {
			lose(s, X86_CODE_AX);
			lose(s, X86_CODE_DX);
		}
	} else {
		lose_rm(s, is_byte);
	}
}

/* Opcodes after 0f, and their VEX and EVEX forms: general registers only. */
static void step_two_bytes(struct step *s)
{
	const struct x86_code *code = s->code;
	uint32_t op = code->op & 0xff;

	if (op == 0x7e) {
		if (!code->is_rep)
			lose_rm(s, false);
	} else if (op == 0x2c || op == 0x2d || op == 0x50 || op == 0xc5 || op == 0xd7 ||
		   (code->is_vector && (op == 0x78 || op == 0x79 || op == 0x93))) {
		lose(s, x86_code_reg(code));
	} else if (code->is_vector || (op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2f) || (op >= 0x51 && op <= 0x7f) ||
		   op == 0xc2 || op == 0xc3 || op == 0xc4 || op == 0xc6 || op >= 0xd0 || op == 0x0d || (op >= 0x18 && op <= 0x1d) ||
		   op == 0x1f || op == 0xa3 || op == 0x20 || op == 0x22) {
		return;
	} else if (op == 0x1e || op == 0xba || op == 0xae || op == 0x00 || (op >= 0x90 && op <= 0x9f) || op == 0xa4 || op == 0xa5 ||
		   op == 0xac || op == 0xad || op == 0xab || op == 0xb3 || op == 0xbb) {
		lose_rm(s, op >= 0x90 && op <= 0x9f);
	} else if (op >= 0xc8 && op <= 0xcf) {
		lose(s, (uint8_t)((op & 7) | (code->rex & 1) << 3));
	} else if (!code->has_modrm || op == 0x01 || op == 0xc7 || op == 0xb0 || op == 0xb1) {
		if (op != 0x01 && code->has_modrm)
			lose_rm(s, op == 0xb0);
		lose(s, X86_CODE_AX);
		lose(s, X86_CODE_CX);
		lose(s, X86_CODE_DX);
		lose(s, 11);
		if (op == 0xa2) /* cpuid */
			lose(s, X86_CODE_BX);
	} else {
		if (op == 0xc0 || op == 0xc1) /* xadd */
			lose_rm(s, op == 0xc0);
		lose(s, op == 0xc0 ? byte_reg(s, x86_code_reg(code)) : x86_code_reg(code));
	}
}

static void step_syscall(struct step *s)
{
	bool is_clone = s->state->regs[X86_CODE_AX].kind == CODE_CLONE;

	lose(s, X86_CODE_CX);
	lose(s, 11);
	set_reg(s, X86_CODE_AX, is_clone ? (struct code_value){ .kind = CODE_CLONED } : nothing);
}

static void step_three_bytes(struct step *s)
{
	const struct x86_code *code = s->code;

	if (code->op >= 0x2f0 && code->op <= 0x2ff) { /* crc32, movbe, and with VEX the bit manipulation instructions */
		lose(s, x86_code_reg(code));
		if (code->is_vector)
			lose(s, code->vvvv);
	} else if (code->op == 0x3f0) {
		lose(s, x86_code_reg(code));
	} else if (code->op >= 0x314 && code->op <= 0x317) {
		lose_rm(s, false);
	}
}

static void step_any(struct step *s)
{
	const struct x86_code *code = s->code;
	uint32_t op = code->op;
	uint8_t low = (uint8_t)((op & 7) | (code->rex & 1) << 3);

	if (op >= 0x200) {
		step_three_bytes(s);
	} else if (op == 0x1a0 || op == 0x1a8) { /* push %fs, %gs */
		push(s, nothing);
	} else if (op == 0x1a1 || op == 0x1a9) {
		raise(s, 8);
	} else if (op == 0x105) {
		step_syscall(s);
	} else if (op >= 0x100) {
		step_two_bytes(s);
	} else if (op >= 0x50 && op <= 0x57) {
		push(s, code->is_16 ? nothing : s->state->regs[low]);
		s->is_contradicted |= code->is_16;
	} else if (op >= 0x58 && op <= 0x5f) {
		pop(s, low);
		s->is_contradicted |= code->is_16;
	} else if (op == 0x68 || op == 0x6a || op == 0x9c || (op == 0xff && x86_code_extension(code) == 6)) {
		push(s, nothing);
	} else if (op == 0x9d || op == 0x8f) {
		raise(s, 8);
		if (op == 0x8f)
			lose_rm(s, false);
	} else if (op == 0xc9) { /* leave */
		set_reg(s, X86_CODE_SP, is_on_stack(s->state->regs[X86_CODE_BP]) ? s->state->regs[X86_CODE_BP] : nothing);
		pop(s, X86_CODE_BP);
	} else if (op == 0xc8) {
		s->is_contradicted = true;
	} else if (op == 0x89 || op == 0x8b || op == 0x8d) {
		step_mov(s);
	} else if (op == 0x80 || op == 0x81 || op == 0x83) {
		step_immediate(s);
	} else {
		step_one_byte(s);
	}
}

bool code_state_step(struct code_state *state, const struct x86_code *code, int64_t next, uint64_t vaddr, bool *ret_is_changed)
{
	struct step s = { .state = state, .code = code, .next = next, .vaddr = vaddr };

	if (state->regs[X86_CODE_AX].kind == CODE_TESTED)
		lose(&s, X86_CODE_AX);
	if (!state->is_outermost)
		step_any(&s);
	if (code->op == 0x85 && code->modrm == 0xc0 && !(code->rex & 5) && state->regs[X86_CODE_AX].kind == CODE_CLONED)
		set_reg(&s, X86_CODE_AX, (struct code_value){ .kind = CODE_TESTED });
	*ret_is_changed = s.is_changed;
	return !s.is_contradicted;
}

bool code_state_code(const struct code_state *state, const struct x86_code *code, int64_t *ret_off)
{
	const struct code_value *value = &state->regs[x86_code_rm(code)];

	if (!x86_code_is_register(code) || value->kind != CODE_PLACE)
		return false;
	*ret_off = value->off;
	return true;
}

static const uint8_t dwarf_numbers[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 }; /* psABI figure 3.36 */

/* The slot relative to `base_kind` that has a value of the kind. NULL: none. */
static const struct code_slot *find_slot(const struct code_state *state, int32_t base_kind, enum code_value_kind kind)
{
	for (size_t i = 0; i < CODE_NR_SLOTS; i++) {
		if (state->slots[i].value.kind == (int32_t)kind && state->slots[i].at.kind == base_kind)
			return &state->slots[i];
	}
	return NULL;
}

static bool set_cfa(const struct code_state *state, bool by_frame, struct sonde_rule *rule)
{
	static const uint8_t order[2][2] = { { X86_CODE_SP, X86_CODE_BP }, { X86_CODE_BP, X86_CODE_SP } };
	const struct code_slot *slot = find_slot(state, CODE_ALIGNED, CODE_CFA);

	for (size_t i = 0; i < 2; i++) {
		struct code_value value = state->regs[order[by_frame][i]];

		if (value.kind == CODE_CFA) {
			rule->cfa_kind = order[by_frame][i] == X86_CODE_SP ? SONDE_CFA_SP : SONDE_CFA_BP;
			rule->cfa_off = -value.off;
			return true;
		}
	}
	for (size_t i = 0; i < 2 && slot; i++) {
		struct code_value value = state->regs[order[!by_frame][i]]; /* rbp first, like compilers */

		if (value.kind == CODE_ALIGNED && slot->value.off == (int16_t)slot->value.off) {
			rule->cfa_kind = order[!by_frame][i] == X86_CODE_SP ? SONDE_CFA_DEREF_SP : SONDE_CFA_DEREF_BP;
			rule->cfa_off = slot->at.off - value.off;
			rule->cfa_add = (int16_t)-slot->value.off;
			return true;
		}
	}
	for (uint8_t i = 0; i < 16; i++) {
		uint8_t reg = (uint8_t)((i + X86_CODE_BX) & 15); /* rbx first: it can be followed farther up */

		if (state->regs[reg].kind == CODE_CFA) {
			rule->cfa_kind = SONDE_CFA_REG;
			rule->cfa_reg = dwarf_numbers[reg];
			rule->cfa_off = -state->regs[reg].off;
			return true;
		}
	}
	return false;
}

struct sonde_rule code_state_rule(const struct code_state *state, bool by_frame)
{
	const struct sonde_rule unsupported = { .kind = SONDE_RULE_KIND_UNSUPPORTED };
	struct sonde_rule rule = { .kind = SONDE_RULE_KIND_STEP, .ra_off = -8 };
	struct code_value bp = state->regs[X86_CODE_BP];
	const struct code_slot *slot;

	if (state->is_outermost)
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_END };
	if (!set_cfa(state, by_frame, &rule))
		return unsupported;
	slot = find_slot(state, CODE_CFA, CODE_BP);
	if (bp.kind == CODE_BP && !(by_frame && slot)) {
		rule.bp_kind = SONDE_BP_SAME;
	} else if (slot) {
		rule.bp_kind = SONDE_BP_CFA;
		rule.bp_off = slot->at.off;
	} else if (bp.kind == CODE_ALIGNED && (slot = find_slot(state, CODE_ALIGNED, CODE_BP))) {
		rule.bp_kind = SONDE_BP_BP;
		rule.bp_off = slot->at.off - bp.off;
	} else {
		rule.bp_kind = SONDE_BP_UNDEFINED;
	}
	slot = find_slot(state, CODE_CFA, CODE_BX);
	if (state->regs[X86_CODE_BX].kind != CODE_BX || (by_frame && slot))
		rule.rbx_off = slot && slot->at.off == (int16_t)slot->at.off && slot->at.off ? (int16_t)slot->at.off : SONDE_RBX_LOST;
	return rule;
}
