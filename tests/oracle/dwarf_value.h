/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_value: evaluates libdw's rules for the calling frame on made-up registers and memory, so that the form of a rule does not
 * matter. x86-64 and arm64. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#define DWARF_NR_REGISTERS 33

/* DWARF register numbers; NO_COLUMN: the machine has no such register. */
struct dwarf_columns {
	int bp, sp, ra, bx, pc;
};
#define NO_COLUMN (-1)
const struct dwarf_columns *dwarf_columns_of(uint16_t elf_machine); /* NULL: another machine */

enum dwarf_state { DWARF_KNOWN, DWARF_OUTERMOST, DWARF_NO_RULE, DWARF_FAILED };

struct dwarf_caller {
	enum dwarf_state state; /* FAILED: libdw refuses the file's rule */
	bool is_signal;
	bool has_bp, has_bx;    /* false: undefined */
	bool is_bx_same;        /* for code that fills this in from another rule than libdw's */
	uint64_t cfa, pc, bp, sp, bx;
	uint64_t row_end;       /* NO_RULE: 0 */
};

/* Any pure function is fine if different addresses give different words. */
static inline uint64_t dwarf_memory_at(uint64_t at)
{
	return (at ^ at >> 31) * 0x9e3779b97f4a7c15ULL;
}

void dwarf_make_registers(const struct dwarf_columns *columns, uint64_t pc, uint64_t *registers);
struct dwarf_caller dwarf_caller_at(Dwarf_CFI *cfi, const struct dwarf_columns *columns, uint64_t pc);

/* Writes the form of the CFA (`reg` NO_COLUMN) or a register at `pc`: its operations without their operands, "breg7 deref plus_uconst".
 * Empty: no expression of more than one operation. */
void dwarf_shape_at(Dwarf_CFI *cfi, uint64_t pc, int reg, char *to, size_t size);
