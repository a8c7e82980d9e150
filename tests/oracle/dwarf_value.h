/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_value: what libdw's rules say about the calling frame, evaluated on made-up registers and made-up memory, so that it does not
 * matter how a rule is written. x86-64 and arm64. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#define DWARF_NR_REGISTERS 33

/* DWARF register numbers; NO_COLUMN: the machine has none. */
struct dwarf_columns {
	int bp, sp, ra, bx, pc;
};
#define NO_COLUMN (-1)
const struct dwarf_columns *dwarf_columns_of(uint16_t elf_machine); /* NULL: another machine */

enum dwarf_state { DWARF_KNOWN, DWARF_OUTERMOST, DWARF_NO_RULE, DWARF_FAILED };

struct dwarf_caller {
	enum dwarf_state state; /* FAILED: libdw refuses what stands there */
	bool is_signal;
	bool has_bp, has_bx;    /* they are not undefined */
	bool is_bx_same;        /* for who fills this in by another rule than libdw's */
	uint64_t cfa, pc, bp, sp, bx;
	uint64_t row_end;       /* NO_RULE: 0 */
};

/* Any pure function will do, as long as different addresses give different words. */
static inline uint64_t dwarf_memory_at(uint64_t at)
{
	return (at ^ at >> 31) * 0x9e3779b97f4a7c15ULL;
}

void dwarf_make_registers(const struct dwarf_columns *columns, uint64_t pc, uint64_t *registers);
struct dwarf_caller dwarf_caller_at(Dwarf_CFI *cfi, const struct dwarf_columns *columns, uint64_t pc);

/* How the CFA (`reg` NO_COLUMN) or a register is written at `pc`, as a text of its operations without their operands: "breg7 deref
 * plus_uconst". Empty: not by an expression of more than one operation. */
void dwarf_shape_at(Dwarf_CFI *cfi, uint64_t pc, int reg, char *to, size_t size);
