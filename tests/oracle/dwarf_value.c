// SPDX-License-Identifier: Apache-2.0
#include "dwarf_value.h"

#include <dwarf.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_OPERANDS 16

struct machine_state {
	uint64_t registers[DWARF_NR_REGISTERS];
	uint64_t operands[MAX_OPERANDS];
	size_t nr;
	bool is_address; /* the top is the address of the value, not the value */
	bool failed;
};

const struct dwarf_columns *dwarf_columns_of(uint16_t elf_machine)
{
	static const struct dwarf_columns x86_64 = { .bp = 6, .sp = 7, .ra = 16, .bx = 3, .pc = 16 };
	static const struct dwarf_columns aarch64 = { .bp = 29, .sp = 31, .ra = 30, .bx = NO_COLUMN, .pc = NO_COLUMN };

	return elf_machine == EM_X86_64 ? &x86_64 : elf_machine == EM_AARCH64 ? &aarch64 : NULL;
}

void dwarf_make_registers(const struct dwarf_columns *columns, uint64_t pc, uint64_t *registers)
{
	for (uint64_t i = 0; i < DWARF_NR_REGISTERS; i++)
		registers[i] = 0x7ffc00000000 + i * 0x10001000;
	if (columns->pc != NO_COLUMN)
		registers[columns->pc] = pc;
}

static void push(struct machine_state *m, uint64_t value)
{
	if (m->nr == MAX_OPERANDS)
		m->failed = true;
	else
		m->operands[m->nr++] = value;
}

static uint64_t pop(struct machine_state *m)
{
	if (!m->nr) {
		m->failed = true;
		return 0;
	}
	return m->operands[--m->nr];
}

static void push_register(struct machine_state *m, uint64_t number, uint64_t off)
{
	if (number >= DWARF_NR_REGISTERS)
		m->failed = true;
	else
		push(m, m->registers[number] + off);
}

static void run_binary(struct machine_state *m, uint8_t atom)
{
	uint64_t right = pop(m), left = pop(m);

	switch (atom) {
	case DW_OP_and:
		push(m, left & right);
		break;
	case DW_OP_plus:
		push(m, left + right);
		break;
	case DW_OP_minus:
		push(m, left - right);
		break;
	case DW_OP_mul:
		push(m, left * right);
		break;
	case DW_OP_shl:
		push(m, right < 64 ? left << right : 0);
		break;
	case DW_OP_ge:
		push(m, (int64_t)left >= (int64_t)right);
		break;
	default:
		m->failed = true;
	}
}

static void run_op(struct machine_state *m, const Dwarf_Op *op, const uint64_t *cfa)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		push_register(m, op->atom - DW_OP_breg0, op->number);
	} else if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		push(m, op->atom - DW_OP_lit0);
	} else if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts) {
		push(m, op->number); /* libdw has sign-extended it */
	} else if (op->atom == DW_OP_bregx) {
		push_register(m, op->number, op->number2);
	} else if (op->atom == DW_OP_regx) { /* the value is in another register */
		push_register(m, op->number, 0);
		m->is_address = false;
	} else if (op->atom == DW_OP_call_frame_cfa && cfa) {
		push(m, *cfa);
	} else if (op->atom == DW_OP_plus_uconst) {
		push(m, pop(m) + op->number);
	} else if (op->atom == DW_OP_deref) {
		push(m, dwarf_memory_at(pop(m)));
	} else if (op->atom == DW_OP_stack_value) {
		m->is_address = false;
	} else {
		run_binary(m, op->atom);
	}
}

/* Runs a location expression and returns the top of its stack. A DW_CFA_expression begins with the CFA on the stack. */
static uint64_t run(struct machine_state *m, const Dwarf_Op *ops, size_t nr, const uint64_t *cfa)
{
	m->nr = 0;
	m->is_address = true;
	for (size_t i = 0; i < nr && !m->failed; i++)
		run_op(m, &ops[i], cfa);
	return pop(m);
}

/* Computes a register of the caller: false when it is undefined. */
static bool register_value(struct machine_state *m, Dwarf_Frame *frame, int reg, uint64_t cfa, uint64_t *ret_value)
{
	Dwarf_Op memory[3], *ops;
	size_t nr;

	if (dwarf_frame_register(frame, reg, memory, &ops, &nr)) {
		m->failed = true;
		return false;
	}
	if (!nr && ops == memory)
		return false;
	if (!nr) {
		*ret_value = m->registers[reg]; /* unchanged */
		return true;
	}
	*ret_value = run(m, ops, nr, &cfa);
	if (m->is_address)
		*ret_value = dwarf_memory_at(*ret_value);
	return true;
}

static void fill(struct machine_state *m, Dwarf_Frame *frame, const struct dwarf_columns *columns, struct dwarf_caller *caller)
{
	Dwarf_Op *ops;
	size_t nr;

	if (dwarf_frame_cfa(frame, &ops, &nr)) {
		m->failed = true;
		return;
	}
	if (nr)
		caller->cfa = run(m, ops, nr, NULL);
	if (!register_value(m, frame, columns->ra, caller->cfa, &caller->pc)) {
		caller->state = DWARF_OUTERMOST;
		m->failed = false; /* its CFA does not matter */
		return;
	}
	caller->has_bp = register_value(m, frame, columns->bp, caller->cfa, &caller->bp);
	register_value(m, frame, columns->sp, caller->cfa, &caller->sp);
	if (columns->bx != NO_COLUMN)
		caller->has_bx = register_value(m, frame, columns->bx, caller->cfa, &caller->bx);
}

struct dwarf_caller dwarf_caller_at(Dwarf_CFI *cfi, const struct dwarf_columns *columns, uint64_t pc)
{
	struct dwarf_caller caller = { .state = DWARF_KNOWN };
	struct machine_state m = { .nr = 0 };
	Dwarf_Frame *frame;
	Dwarf_Addr end = 0;

	if (dwarf_cfi_addrframe(cfi, pc, &frame))
		return (struct dwarf_caller){ .state = DWARF_NO_RULE };
	dwarf_make_registers(columns, pc, m.registers);
	if (dwarf_frame_info(frame, NULL, &end, &caller.is_signal) != columns->ra)
		m.failed = true;
	else
		fill(&m, frame, columns, &caller);
	caller.row_end = end;
	if (m.failed)
		caller.state = DWARF_FAILED;
	free(frame);
	return caller;
}

static void put_name(uint8_t atom, char *to, size_t size)
{
	static const struct {
		uint8_t atom;
		const char *name;
	} names[] = { { DW_OP_deref, "deref" },	      { DW_OP_plus_uconst, "plus_uconst" },
		      { DW_OP_plus, "plus" },	      { DW_OP_and, "and" },
		      { DW_OP_shl, "shl" },	      { DW_OP_ge, "ge" },
		      { DW_OP_bregx, "bregx" },	      { DW_OP_regx, "regx" },
		      { DW_OP_mul, "mul" },	      { DW_OP_call_frame_cfa, "cfa" },
		      { DW_OP_stack_value, "value" }, { DW_OP_minus, "minus" } };

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
		snprintf(to, size, "breg%d", atom - DW_OP_breg0);
		return;
	}
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
		snprintf(to, size, "lit");
		return;
	}
	if (atom >= DW_OP_const1u && atom <= DW_OP_consts) {
		snprintf(to, size, "const");
		return;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].atom == atom) {
			snprintf(to, size, "%s", names[i].name);
			return;
		}
	}
	snprintf(to, size, "op%#x", atom);
}

void dwarf_shape_at(Dwarf_CFI *cfi, uint64_t pc, int reg, char *to, size_t size)
{
	Dwarf_Frame *frame;
	Dwarf_Op memory[3], *ops;
	size_t nr = 0, used = 0;
	int err;

	to[0] = '\0';
	if (dwarf_cfi_addrframe(cfi, pc, &frame))
		return;
	err = reg == NO_COLUMN ? dwarf_frame_cfa(frame, &ops, &nr) : dwarf_frame_register(frame, reg, memory, &ops, &nr);
	if (err || !nr || (reg == NO_COLUMN && nr < 2) ||
	    (reg != NO_COLUMN && ops == memory && ops[0].atom == DW_OP_call_frame_cfa && nr <= 2))
		nr = 0; /* unknown, unchanged, an offset from a register or from the CFA */
	for (size_t i = 0; i < nr && used + 16 < size; i++) {
		if (i)
			to[used++] = ' ';
		put_name(ops[i].atom, to + used, size - used);
		while (to[used])
			used++;
	}
	free(frame);
}
