// SPDX-License-Identifier: Apache-2.0
#include "elf/cfi_program.h"

#include <errno.h>

enum {
	/* the operand is in the low six bits */
	DW_CFA_advance_loc = 0x40,
	DW_CFA_offset = 0x80,
	DW_CFA_restore = 0xc0,

	DW_CFA_nop = 0x00,
	DW_CFA_set_loc = 0x01,
	DW_CFA_advance_loc1 = 0x02,
	DW_CFA_advance_loc2 = 0x03,
	DW_CFA_advance_loc4 = 0x04,
	DW_CFA_offset_extended = 0x05,
	DW_CFA_restore_extended = 0x06,
	DW_CFA_undefined = 0x07,
	DW_CFA_same_value = 0x08,
	DW_CFA_register = 0x09,
	DW_CFA_remember_state = 0x0a,
	DW_CFA_restore_state = 0x0b,
	DW_CFA_def_cfa = 0x0c,
	DW_CFA_def_cfa_register = 0x0d,
	DW_CFA_def_cfa_offset = 0x0e,
	DW_CFA_def_cfa_expression = 0x0f,
	DW_CFA_expression = 0x10,
	DW_CFA_offset_extended_sf = 0x11,
	DW_CFA_def_cfa_sf = 0x12,
	DW_CFA_def_cfa_offset_sf = 0x13,
	DW_CFA_val_offset = 0x14,
	DW_CFA_val_offset_sf = 0x15,
	DW_CFA_val_expression = 0x16,
	DW_CFA_MIPS_advance_loc8 = 0x1d,
	DW_CFA_GNU_args_size = 0x2e,
	DW_CFA_GNU_negative_offset_extended = 0x2f,
};

static bool fits_s16(int64_t value)
{
	return value == (int16_t)value;
}

static bool fits_s32(int64_t value)
{
	return value == (int32_t)value;
}

static void set_unfit(struct cfi_state *state, uint8_t part, bool is_unfit)
{
	state->unfit = (uint8_t)(is_unfit ? state->unfit | part : state->unfit & ~part);
}

static void set_cfa(struct cfi_run *run, const struct cfi_cfa *cfa)
{
	struct cfi_state *state = &run->state;
	bool fits = fits_s32(cfa->off) && fits_s16(cfa->add);

	state->cfa_is_register = cfa->form == CFI_CFA_REGISTER;
	state->rule.cfa_off = (int32_t)cfa->off;
	state->rule.cfa_add = (int16_t)cfa->add;
	state->rule.cfa_reg = 0;
	switch (cfa->form) {
	case CFI_CFA_REGISTER:
		state->cfa_reg = cfa->reg;
		state->cfa_off = cfa->off;
		fits &= cfa->reg < CFI_REG_RA;
		if (cfa->reg == CFI_REG_SP) {
			state->rule.cfa_kind = SONDE_CFA_SP;
		} else if (cfa->reg == CFI_REG_BP) {
			state->rule.cfa_kind = SONDE_CFA_BP;
		} else {
			state->rule.cfa_kind = SONDE_CFA_REG;
			state->rule.cfa_reg = (uint8_t)cfa->reg;
		}
		break;
	case CFI_CFA_DEREF:
		state->rule.cfa_kind = cfa->reg == CFI_REG_SP ? SONDE_CFA_DEREF_SP : SONDE_CFA_DEREF_BP;
		break;
	case CFI_CFA_PLT:
		state->rule.cfa_kind = SONDE_CFA_PLT;
		state->rule.cfa_reg = (uint8_t)cfa->reg;
		break;
	case CFI_CFA_OTHER:
		fits = false;
	}
	set_unfit(state, CFI_UNFIT_CFA, !fits);
	run->has_changed = true;
}

static void set_bp(struct cfi_state *state, enum cfi_where_kind kind, int64_t off)
{
	bool fits = fits_s32(off);

	state->rule.bp_off = (int32_t)off;
	switch (kind) {
	case CFI_SAME:
		state->rule.bp_kind = SONDE_BP_SAME;
		break;
	case CFI_UNDEFINED:
		state->rule.bp_kind = SONDE_BP_UNDEFINED;
		break;
	case CFI_AT_CFA:
		state->rule.bp_kind = SONDE_BP_CFA;
		break;
	case CFI_AT_BP:
		state->rule.bp_kind = SONDE_BP_BP;
		break;
	case CFI_IS_CFA:
	case CFI_ELSEWHERE:
		fits = false;
	}
	set_unfit(state, CFI_UNFIT_BP, !fits);
}

/* Defines a column; `off` is 0 where the kind has none. */
static void set_where(struct cfi_run *run, uint64_t reg, enum cfi_where_kind kind, int64_t off)
{
	struct cfi_state *state = &run->state;

	switch (reg) {
	case CFI_REG_BP:
		set_bp(state, kind, off);
		break;
	case CFI_REG_SP: /* one of its own (glibc's setcontext) contradicts "the caller's sp is the CFA" */
		set_unfit(state, CFI_UNFIT_SP, kind != CFI_IS_CFA);
		break;
	case CFI_REG_RA:
		state->ra_is_undefined = kind == CFI_UNDEFINED;
		state->rule.ra_off = (int16_t)off;
		set_unfit(state, CFI_UNFIT_RA, kind != CFI_AT_CFA || !fits_s16(off));
		break;
	default:
		return;
	}
	run->has_changed = true;
}

/* Gives a column the rule that the CIE gave it. */
static void restore(struct cfi_run *run, uint64_t reg)
{
	const struct cfi_state *initial = &run->cie->initial;
	struct cfi_state *state = &run->state;
	uint8_t part;

	switch (reg) {
	case CFI_REG_BP:
		part = CFI_UNFIT_BP;
		state->rule.bp_kind = initial->rule.bp_kind;
		state->rule.bp_off = initial->rule.bp_off;
		break;
	case CFI_REG_SP:
		part = CFI_UNFIT_SP;
		break;
	case CFI_REG_RA:
		part = CFI_UNFIT_RA;
		state->ra_is_undefined = initial->ra_is_undefined;
		state->rule.ra_off = initial->rule.ra_off;
		break;
	default:
		part = 0;
	}
	if (!run->row) { /* a CIE has nothing to restore */
		reader_fail(&run->program);
	} else if (part) {
		set_unfit(state, part, initial->unfit & part);
		run->has_changed = true;
	}
}

static struct sonde_rule rule_of(const struct cfi_state *state)
{
	if (state->ra_is_undefined)
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_END };
	if (state->unfit)
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_UNSUPPORTED };
	return state->rule;
}

static void give_row(struct cfi_run *run)
{
	struct sonde_rule rule = rule_of(&run->state);

	run->has_changed = false;
	run->stats->nr_rows++;
	run->stats->nr_unsupported += rule.kind == SONDE_RULE_KIND_UNSUPPORTED;
	run->err = run->row(run->arg, run->loc, &rule);
	if (run->err)
		run->program.pos = run->program.end;
}

/* Gives the row that ends here, if there is something new in it, and moves on; the rest of a program behind the FDE's end is idle. */
static void move_to(struct cfi_run *run, uint64_t loc)
{
	if (loc == run->loc)
		return;
	if (run->has_changed)
		give_row(run);
	run->loc = loc;
	if (loc >= run->end)
		run->program.pos = run->program.end;
}

static void advance(struct cfi_run *run, uint64_t delta)
{
	uint64_t loc;

	if (!run->row || __builtin_mul_overflow(delta, run->cie->code_align, &delta) || __builtin_add_overflow(run->loc, delta, &loc)) {
		reader_fail(&run->program);
		return;
	}
	if (!run->program.bad)
		move_to(run, loc);
}

static void set_loc(struct cfi_run *run)
{
	uint64_t loc = cfi_read_pointer(run->section, &run->program, run->cie->pointer_encoding);

	if (!run->row || loc < run->loc)
		reader_fail(&run->program);
	else if (!run->program.bad)
		move_to(run, loc);
}

/* factor * data_align; what overflows fits no field later either. */
static int64_t factored(const struct cfi_run *run, int64_t factor)
{
	int64_t off;

	return __builtin_mul_overflow(factor, run->cie->data_align, &off) ? INT64_MAX : off;
}

static int64_t unsigned_off(struct cfi_run *run)
{
	uint64_t off = cfi_uleb(&run->program);

	return off > INT64_MAX ? INT64_MAX : (int64_t)off;
}

static void define_cfa(struct cfi_run *run, uint64_t reg, int64_t off)
{
	set_cfa(run, &(struct cfi_cfa){ .form = CFI_CFA_REGISTER, .reg = reg, .off = off });
}

/* Half a definition. DWARF wants a register and an offset to be there already; gcc's unwinder keeps them through an expression,
 * and hand-written code relies on it (two functions of libgcrypt). */
static void change_cfa_register(struct cfi_run *run, uint64_t reg)
{
	define_cfa(run, reg, run->state.cfa_off);
}

static void change_cfa_off(struct cfi_run *run, int64_t off)
{
	struct cfi_state *state = &run->state;

	state->cfa_off = off;
	if (!state->cfa_is_register)
		return; /* waits for its register */
	state->rule.cfa_off = (int32_t)off;
	set_unfit(state, CFI_UNFIT_CFA, !fits_s32(off) || state->cfa_reg >= CFI_REG_RA);
	run->has_changed = true;
}

static void remember(struct cfi_run *run)
{
	if (run->nr_remembered == CFI_MAX_REMEMBERED)
		reader_fail(&run->program);
	else
		run->remembered[run->nr_remembered++] = run->state;
}

/* Takes the CFA back too: DWARF 5 section 6.4.2.4, and what gcc's unwinder does. */
static void recall(struct cfi_run *run)
{
	if (!run->nr_remembered) {
		reader_fail(&run->program);
		return;
	}
	run->state = run->remembered[--run->nr_remembered];
	run->has_changed = true;
}

static struct reader block(struct cfi_run *run)
{
	uint64_t size = cfi_uleb(&run->program);

	return reader_sub(&run->program, size);
}

static void run_register_op(struct cfi_run *run, uint8_t op)
{
	uint64_t reg = cfi_uleb(&run->program);
	int64_t off;

	switch (op) {
	case DW_CFA_offset_extended:
		set_where(run, reg, CFI_AT_CFA, factored(run, unsigned_off(run)));
		break;
	case DW_CFA_offset_extended_sf:
		set_where(run, reg, CFI_AT_CFA, factored(run, reader_sleb(&run->program)));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		set_where(run, reg, CFI_AT_CFA, factored(run, -unsigned_off(run)));
		break;
	case DW_CFA_restore_extended:
		restore(run, reg);
		break;
	case DW_CFA_undefined:
		set_where(run, reg, CFI_UNDEFINED, 0);
		break;
	case DW_CFA_same_value:
		set_where(run, reg, CFI_SAME, 0);
		break;
	case DW_CFA_register:
		cfi_uleb(&run->program);
		set_where(run, reg, CFI_ELSEWHERE, 0);
		break;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		off = op == DW_CFA_val_offset ? unsigned_off(run) : reader_sleb(&run->program);
		set_where(run, reg, off ? CFI_ELSEWHERE : CFI_IS_CFA, 0);
		break;
	case DW_CFA_val_expression:
		block(run);
		set_where(run, reg, CFI_ELSEWHERE, 0);
		break;
	case DW_CFA_expression: {
		struct cfi_where where = cfi_where_of_expression(block(run));

		set_where(run, reg, where.kind, where.off);
		break;
	}
	default:
		reader_fail(&run->program);
	}
}

static void run_op(struct cfi_run *run, uint8_t op)
{
	struct reader *r = &run->program;
	uint64_t reg;

	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_set_loc:
		set_loc(run);
		break;
	case DW_CFA_advance_loc1:
		advance(run, reader_u8(r));
		break;
	case DW_CFA_advance_loc2:
		advance(run, reader_u16(r));
		break;
	case DW_CFA_advance_loc4:
		advance(run, reader_u32(r));
		break;
	case DW_CFA_MIPS_advance_loc8:
		advance(run, reader_u64(r));
		break;
	case DW_CFA_remember_state:
		remember(run);
		break;
	case DW_CFA_restore_state:
		recall(run);
		break;
	case DW_CFA_def_cfa:
		reg = cfi_uleb(r);
		define_cfa(run, reg, unsigned_off(run));
		break;
	case DW_CFA_def_cfa_sf:
		reg = cfi_uleb(r);
		define_cfa(run, reg, factored(run, reader_sleb(r)));
		break;
	case DW_CFA_def_cfa_register:
		change_cfa_register(run, cfi_uleb(r));
		break;
	case DW_CFA_def_cfa_offset:
		change_cfa_off(run, unsigned_off(run));
		break;
	case DW_CFA_def_cfa_offset_sf:
		change_cfa_off(run, factored(run, reader_sleb(r)));
		break;
	case DW_CFA_def_cfa_expression: {
		struct cfi_cfa cfa = cfi_cfa_of_expression(block(run));

		set_cfa(run, &cfa);
		break;
	}
	case DW_CFA_GNU_args_size:
		cfi_uleb(r);
		break;
	default:
		run_register_op(run, op);
	}
}

/* A CIE's program starts from nothing but what the psABI says: the CFA is the caller's sp, and rbp is callee-saved, so that
 * unmentioned means untouched (section 3.2.1). */
struct cfi_state cfi_state_at_start(void)
{
	return (struct cfi_state){
		.rule = { .kind = SONDE_RULE_KIND_STEP, .bp_kind = SONDE_BP_SAME },
		.unfit = CFI_UNFIT_CFA | CFI_UNFIT_RA,
	};
}

int cfi_program_run(struct cfi_run *run)
{
	while (reader_left(&run->program)) {
		uint8_t op = *run->program.pos++, operand = op & 0x3f;

		if (op == DW_CFA_def_cfa_offset) { /* half of all */
			change_cfa_off(run, unsigned_off(run));
			continue;
		}
		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			advance(run, operand);
			break;
		case DW_CFA_offset: {
			int64_t off = unsigned_off(run);

			if (operand == CFI_REG_BP || operand == CFI_REG_SP || operand == CFI_REG_RA)
				set_where(run, operand, CFI_AT_CFA, factored(run, off));
			break;
		}
		case DW_CFA_restore:
			restore(run, operand);
			break;
		default:
			run_op(run, op);
		}
	}
	if (run->err)
		return run->err;
	if (run->program.bad)
		return -EBADMSG;
	if (run->row && run->has_changed && run->loc < run->end)
		give_row(run);
	return run->err;
}
