// SPDX-License-Identifier: Apache-2.0
#include "cfi/cfi_program.h"

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
	DW_CFA_AARCH64_negate_ra_state_with_pc = 0x2c,
	DW_CFA_AARCH64_negate_ra_state = 0x2d, /* the return address is signed from here on, or no longer */
	DW_CFA_GNU_args_size = 0x2e,
	DW_CFA_GNU_negative_offset_extended = 0x2f,
};

static void give_row(struct cfi_run *run)
{
	struct sonde_rule rule = cfi_state_rule(&run->state);

	run->has_changed = false;
	run->stats->nr_rows++;
	run->stats->nr_unsupported += rule.kind == SONDE_RULE_KIND_UNSUPPORTED;
	run->err = run->row(run->arg, run->loc, &rule);
	if (run->err)
		run->program.pos = run->program.end;
}

/* Gives the row that ends here, if something changed, and moves on. Ignores the part of a program after the FDE's end. */
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

/* factor * data_align. On overflow INT64_MAX, which no field can hold. */
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

static void define_cfa(struct cfi_run *run, const struct cfi_cfa *cfa)
{
	cfi_state_set_cfa(&run->state, run->machine, cfa);
	run->has_changed = true;
}

static void define_cfa_register(struct cfi_run *run, uint64_t reg, int64_t off)
{
	define_cfa(run, &(struct cfi_cfa){ .form = CFI_CFA_REGISTER, .reg = reg, .off = off });
}

static void define_cfa_off(struct cfi_run *run, int64_t off)
{
	run->has_changed |= cfi_state_set_cfa_off(&run->state, run->machine, off);
}

static void set_where(struct cfi_run *run, uint64_t reg, enum cfi_where_kind kind, int64_t off)
{
	run->has_changed |= cfi_state_set_where(&run->state, run->machine, cfi_part_of(run->machine, reg), kind, off);
}

static void restore(struct cfi_run *run, uint64_t reg)
{
	if (run->row)
		run->has_changed |= cfi_state_restore(&run->state, &run->cie->initial, cfi_part_of(run->machine, reg));
	else
		reader_fail(&run->program); /* a CIE has nothing to restore */
}

static void remember(struct cfi_run *run)
{
	if (run->nr_remembered == CFI_MAX_REMEMBERED)
		reader_fail(&run->program);
	else
		run->remembered[run->nr_remembered++] = run->state;
}

/* Restores the CFA too: DWARF 5 section 6.4.2.4, and like gcc's unwinder. */
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
		set_where(run, reg, CFI_IN_REG, unsigned_off(run));
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
		struct cfi_where where = cfi_where_of_expression(run->machine, block(run));

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
	case DW_CFA_AARCH64_negate_ra_state_with_pc:
	case DW_CFA_AARCH64_negate_ra_state: /* ignored: the walk strips the signature from every return address */
		if (!run->machine->is_ra_register)
			reader_fail(r);
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
		define_cfa_register(run, reg, unsigned_off(run));
		break;
	case DW_CFA_def_cfa_sf:
		reg = cfi_uleb(r);
		define_cfa_register(run, reg, factored(run, reader_sleb(r)));
		break;
	case DW_CFA_def_cfa_register:
		define_cfa_register(run, cfi_uleb(r), run->state.cfa_off);
		break;
	case DW_CFA_def_cfa_offset:
		define_cfa_off(run, unsigned_off(run));
		break;
	case DW_CFA_def_cfa_offset_sf:
		define_cfa_off(run, factored(run, reader_sleb(r)));
		break;
	case DW_CFA_def_cfa_expression: {
		struct cfi_cfa cfa = cfi_cfa_of_expression(run->machine, block(run));

		define_cfa(run, &cfa);
		break;
	}
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

		if (op == DW_CFA_def_cfa_offset) { /* half of all operations */
			define_cfa_off(run, unsigned_off(run));
			continue;
		}
		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			advance(run, operand);
			break;
		case DW_CFA_offset: {
			int64_t off = unsigned_off(run);

			if (run->machine->parts[operand])
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
