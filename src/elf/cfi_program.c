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

static bool set_cfa(struct sonde_rule *rule, const struct cfi_cfa *cfa)
{
	if (!fits_s32(cfa->off) || !fits_s16(cfa->add))
		return false;
	rule->cfa_off = (int32_t)cfa->off;
	rule->cfa_add = (int16_t)cfa->add;
	switch (cfa->form) {
	case CFI_CFA_REGISTER:
		if (cfa->reg >= CFI_REG_RA)
			return false;
		if (cfa->reg == CFI_REG_SP) {
			rule->cfa_kind = SONDE_CFA_SP;
		} else if (cfa->reg == CFI_REG_BP) {
			rule->cfa_kind = SONDE_CFA_BP;
		} else {
			rule->cfa_kind = SONDE_CFA_REG;
			rule->cfa_reg = (uint8_t)cfa->reg;
		}
		return true;
	case CFI_CFA_DEREF:
		rule->cfa_kind = cfa->reg == CFI_REG_SP ? SONDE_CFA_DEREF_SP : SONDE_CFA_DEREF_BP;
		return true;
	case CFI_CFA_PLT:
		rule->cfa_kind = SONDE_CFA_PLT;
		rule->cfa_reg = (uint8_t)cfa->reg;
		return true;
	case CFI_CFA_UNSET:
	case CFI_CFA_OTHER:
		break;
	}
	return false;
}

static bool set_bp(struct sonde_rule *rule, const struct cfi_where *bp)
{
	switch (bp->kind) {
	case CFI_UNSET: /* rbp is callee-saved: unmentioned means untouched (psABI section 3.2.1) */
	case CFI_SAME:
		rule->bp_kind = SONDE_BP_SAME;
		return true;
	case CFI_UNDEFINED:
		rule->bp_kind = SONDE_BP_UNDEFINED;
		return true;
	case CFI_AT_CFA:
	case CFI_AT_BP:
		rule->bp_kind = bp->kind == CFI_AT_CFA ? SONDE_BP_CFA : SONDE_BP_BP;
		rule->bp_off = (int32_t)bp->off;
		return fits_s32(bp->off);
	case CFI_IS_CFA:
	case CFI_ELSEWHERE:
		break;
	}
	return false;
}

struct sonde_rule cfi_rule_of(const struct cfi_state *state)
{
	const struct cfi_where *ra = &state->where[CFI_COLUMN_RA], *sp = &state->where[CFI_COLUMN_SP];
	struct sonde_rule rule = { .kind = SONDE_RULE_KIND_STEP };

	if (ra->kind == CFI_UNDEFINED)
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_END };
	rule.ra_off = (int16_t)ra->off;
	/* A rule of its own for sp (glibc's setcontext) contradicts "the caller's sp is the CFA". */
	if (ra->kind != CFI_AT_CFA || !fits_s16(ra->off) || (sp->kind != CFI_UNSET && sp->kind != CFI_IS_CFA) ||
	    !set_cfa(&rule, &state->cfa) || !set_bp(&rule, &state->where[CFI_COLUMN_BP]))
		return (struct sonde_rule){ .kind = SONDE_RULE_KIND_UNSUPPORTED };
	return rule;
}

static void give_row(struct cfi_run *run)
{
	struct sonde_rule rule = cfi_rule_of(&run->state);

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

static struct cfi_where *column(struct cfi_run *run, uint64_t reg)
{
	switch (reg) {
	case CFI_REG_BP:
		return &run->state.where[CFI_COLUMN_BP];
	case CFI_REG_SP:
		return &run->state.where[CFI_COLUMN_SP];
	case CFI_REG_RA:
		return &run->state.where[CFI_COLUMN_RA];
	default:
		return NULL;
	}
}

static void set_where(struct cfi_run *run, uint64_t reg, enum cfi_where_kind kind, int64_t off)
{
	struct cfi_where *where = column(run, reg);

	if (!where)
		return;
	*where = (struct cfi_where){ .kind = kind, .off = off };
	run->has_changed = true;
}

static void restore(struct cfi_run *run, uint64_t reg)
{
	struct cfi_where *where = column(run, reg);

	if (!run->row) { /* a CIE has nothing to restore */
		reader_fail(&run->program);
	} else if (where) {
		*where = run->cie->initial.where[where - run->state.where];
		run->has_changed = true;
	}
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
	run->state.cfa = (struct cfi_cfa){ .form = CFI_CFA_REGISTER, .reg = reg, .off = off };
	run->has_changed = true;
}

/* Half a definition: there must be a register and an offset already. */
static void change_cfa(struct cfi_run *run, uint64_t reg, int64_t off)
{
	if (run->state.cfa.form != CFI_CFA_REGISTER)
		reader_fail(&run->program);
	else
		define_cfa(run, reg, off);
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
		change_cfa(run, cfi_uleb(r), run->state.cfa.off);
		break;
	case DW_CFA_def_cfa_offset:
		change_cfa(run, run->state.cfa.reg, unsigned_off(run));
		break;
	case DW_CFA_def_cfa_offset_sf:
		change_cfa(run, run->state.cfa.reg, factored(run, reader_sleb(r)));
		break;
	case DW_CFA_def_cfa_expression:
		run->state.cfa = cfi_cfa_of_expression(block(run));
		run->has_changed = true;
		break;
	case DW_CFA_GNU_args_size:
		cfi_uleb(r);
		break;
	default:
		run_register_op(run, op);
	}
}

int cfi_program_run(struct cfi_run *run)
{
	while (reader_left(&run->program)) {
		uint8_t op = *run->program.pos++, operand = op & 0x3f;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			advance(run, operand);
			break;
		case DW_CFA_offset:
			set_where(run, operand, CFI_AT_CFA, factored(run, unsigned_off(run)));
			break;
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
