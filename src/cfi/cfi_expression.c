// SPDX-License-Identifier: Apache-2.0
/* Recognizes the DWARF expressions that compilers, linkers and hand-written assembly put into CFI, by their form. */
#include "cfi/cfi_program.h"

enum {
	DW_OP_deref = 0x06,
	DW_OP_and = 0x1a,
	DW_OP_plus = 0x22,
	DW_OP_plus_uconst = 0x23,
	DW_OP_shl = 0x24,
	DW_OP_ge = 0x2a,
	DW_OP_lit0 = 0x30,
	DW_OP_lit31 = 0x4f,
	DW_OP_breg0 = 0x70,
	DW_OP_breg31 = 0x8f,
	DW_OP_bregx = 0x92,
};

static bool read_breg(struct reader *r, uint64_t *ret_reg, int64_t *ret_off)
{
	uint8_t op = reader_u8(r);

	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		*ret_reg = op - DW_OP_breg0;
	else if (op == DW_OP_bregx)
		*ret_reg = reader_uleb(r);
	else
		return false;
	*ret_off = reader_sleb(r);
	return !r->bad;
}

/* The rest of a linker's rule for .plt, where each entry pushes once: sp + off + ((pc & 15) >= threshold) * 8. */
static bool read_plt(const struct cfi_machine *machine, struct reader *r, uint64_t *ret_threshold)
{
	static const uint8_t tail[] = { DW_OP_ge, DW_OP_lit0 + 3, DW_OP_shl, DW_OP_plus };
	uint64_t reg;
	int64_t off;
	uint8_t literal;

	if (!read_breg(r, &reg, &off) || reg != machine->pc_column || off)
		return false;
	if (reader_u8(r) != DW_OP_lit0 + 15 || reader_u8(r) != DW_OP_and)
		return false;
	literal = reader_u8(r);
	if (literal < DW_OP_lit0 || literal > DW_OP_lit31)
		return false;
	*ret_threshold = literal - DW_OP_lit0;
	return reader_left(r) == sizeof(tail) && !memcmp(r->pos, tail, sizeof(tail));
}

/* The operand of a plus_uconst here; 0: none. */
static int64_t read_addend(struct reader *r)
{
	if (!reader_left(r) || *r->pos != DW_OP_plus_uconst)
		return 0;
	reader_skip(r, 1);
	return (int64_t)reader_uleb(r);
}

struct cfi_cfa cfi_cfa_of_expression(const struct cfi_machine *machine, struct reader expression)
{
	const struct cfi_cfa other = { .form = CFI_CFA_OTHER };
	struct cfi_cfa cfa = { 0 };
	struct reader rest;

	if (!read_breg(&expression, &cfa.reg, &cfa.off))
		return other;
	if (!reader_left(&expression)) {
		cfa.form = CFI_CFA_REGISTER;
		return cfa;
	}
	rest = expression;
	if (cfi_part_of(machine, cfa.reg) == CFI_PART_SP && read_plt(machine, &rest, &cfa.reg)) {
		cfa.form = CFI_CFA_PLT;
		return cfa;
	}
	if ((cfi_part_of(machine, cfa.reg) != CFI_PART_SP && cfi_part_of(machine, cfa.reg) != CFI_PART_BP) ||
	    reader_u8(&expression) != DW_OP_deref)
		return other;
	cfa.form = CFI_CFA_DEREF;
	cfa.add = read_addend(&expression);
	if (reader_left(&expression) && cfi_part_of(machine, cfa.reg) == CFI_PART_SP && cfa.add == (uint8_t)cfa.add) {
		if (reader_u8(&expression) != DW_OP_deref)
			return other;
		cfa.form = CFI_CFA_DEREF_TWICE;
		cfa.reg = (uint64_t)cfa.add;
		cfa.add = read_addend(&expression);
	}
	return expression.bad || reader_left(&expression) ? other : cfa;
}

struct cfi_where cfi_where_of_expression(const struct cfi_machine *machine, struct reader expression)
{
	const struct cfi_where elsewhere = { .kind = CFI_ELSEWHERE };
	struct cfi_where where;
	uint64_t reg;

	if (!read_breg(&expression, &reg, &where.off) || reader_left(&expression))
		return elsewhere;
	if (cfi_part_of(machine, reg) != CFI_PART_BP && cfi_part_of(machine, reg) != CFI_PART_SP)
		return elsewhere;
	where.kind = cfi_part_of(machine, reg) == CFI_PART_BP ? CFI_AT_BP : CFI_AT_SP;
	return where;
}
