// SPDX-License-Identifier: Apache-2.0
/* The unwind tables of real files against libdw, by value: both sides' rules are evaluated on made-up registers and made-up
 * memory, so that it does not matter how a rule is written. Small files at every row's first address and the one before it,
 * large ones at random addresses. A file that this machine lacks is skipped loudly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>

#include "unwind/unwind_table.h"

#define NR_REGISTERS   17
#define NR_RANDOM_PCS  40000u
#define MAX_EXACT_ROWS 60000u

enum { BP = 6, SP = 7, RA = 16 };

struct files {
	struct elf_file *elf;
	struct rule_table *rules;
	struct unwind_table *table;
	Elf *dw_elf;
	Dwarf_CFI *cfi;
};

struct counts {
	uint32_t nr_pcs, nr_rows, nr_rules;
	uint32_t nr_step, nr_none, nr_end, nr_signal, nr_unsupported, nr_differ;
};

enum state { KNOWN, UNDEFINED, NO_RULE };

struct caller {		  /* what a rule says about the calling frame */
	enum state state; /* of the frame: UNDEFINED is the outermost */
	bool is_signal;
	bool has_bp;
	uint64_t cfa, pc, bp, sp;
};

/* Any pure function will do, as long as different addresses give different words. */
static uint64_t memory_at(uint64_t at)
{
	return (at ^ at >> 31) * 0x9e3779b97f4a7c15ULL;
}

static void make_registers(uint64_t pc, uint64_t *registers)
{
	for (uint64_t i = 0; i < NR_REGISTERS; i++)
		registers[i] = 0x7ffc00000000 + i * 0x10001000;
	registers[RA] = pc;
}

/* The value of a DWARF location expression: of what is at the address, or of the stack value. Fails the test on an unknown op. */
static uint64_t evaluate(const Dwarf_Op *ops, size_t nr, const uint64_t *registers, const uint64_t *cfa, bool *ret_is_address)
{
	uint64_t stack[16] = { 0 };
	size_t top = 0; /* entries */

	*ret_is_address = true;
	for (size_t i = 0; i < nr; i++) {
		const Dwarf_Op *op = &ops[i];

		assert_true(top < 15);
		if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
			assert_true(op->atom - DW_OP_breg0 < NR_REGISTERS);
			stack[top++] = registers[op->atom - DW_OP_breg0] + op->number;
		} else if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
			stack[top++] = op->atom - DW_OP_lit0;
		} else if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts) {
			stack[top++] = op->number; /* libdw has extended the sign */
		} else if (op->atom == DW_OP_bregx) {
			assert_true(op->number < NR_REGISTERS);
			stack[top++] = registers[op->number] + op->number2;
		} else if (op->atom == DW_OP_regx) { /* the value is in another register */
			assert_true(op->number < NR_REGISTERS);
			stack[top++] = registers[op->number];
			*ret_is_address = false;
		} else if (op->atom == DW_OP_call_frame_cfa) {
			assert_non_null(cfa);
			stack[top++] = *cfa;
		} else if (op->atom == DW_OP_plus_uconst) {
			assert_true(top >= 1);
			stack[top - 1] += op->number;
		} else if (op->atom == DW_OP_deref) {
			assert_true(top >= 1);
			stack[top - 1] = memory_at(stack[top - 1]);
		} else if (op->atom == DW_OP_stack_value) {
			*ret_is_address = false;
		} else if (top < 2) {
			fail_msg("DWARF operation %#x on %zu operands", op->atom, top);
		} else {
			top--;
			switch (op->atom) {
			case DW_OP_and:
				stack[top - 1] &= stack[top];
				break;
			case DW_OP_plus:
				stack[top - 1] += stack[top];
				break;
			case DW_OP_mul:
				stack[top - 1] *= stack[top];
				break;
			case DW_OP_shl:
				stack[top - 1] <<= stack[top];
				break;
			case DW_OP_ge:
				stack[top - 1] = (int64_t)stack[top - 1] >= (int64_t)stack[top];
				break;
			default:
				fail_msg("DWARF operation %#x", op->atom);
			}
		}
	}
	assert_true(top >= 1); /* DW_CFA_expression starts with the CFA on the stack */
	return stack[top - 1];
}

/* A register of the caller by libdw: false when it is undefined. */
static bool register_by_libdw(Dwarf_Frame *frame, int reg, const uint64_t *registers, uint64_t cfa, uint64_t *ret_value)
{
	Dwarf_Op memory[3], *ops;
	size_t nr;
	bool is_address;

	assert_int_equal(dwarf_frame_register(frame, reg, memory, &ops, &nr), 0);
	if (!nr && ops == memory)
		return false;
	if (!nr) {
		*ret_value = registers[reg]; /* the same value */
		return true;
	}
	*ret_value = evaluate(ops, nr, registers, &cfa, &is_address);
	if (is_address)
		*ret_value = memory_at(*ret_value);
	return true;
}

static struct caller caller_by_libdw(Dwarf_CFI *cfi, uint64_t pc)
{
	struct caller caller = { .state = KNOWN };
	uint64_t registers[NR_REGISTERS];
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	size_t nr;
	bool is_address;

	make_registers(pc, registers);
	if (dwarf_cfi_addrframe(cfi, pc, &frame))
		return (struct caller){ .state = NO_RULE };
	assert_int_equal(dwarf_frame_info(frame, NULL, NULL, &caller.is_signal), RA);
	if (!caller.is_signal) {
		assert_int_equal(dwarf_frame_cfa(frame, &ops, &nr), 0);
		if (nr)
			caller.cfa = evaluate(ops, nr, registers, NULL, &is_address);
		if (!register_by_libdw(frame, RA, registers, caller.cfa, &caller.pc))
			caller.state = UNDEFINED;
		else
			caller.has_bp = register_by_libdw(frame, BP, registers, caller.cfa, &caller.bp);
		register_by_libdw(frame, SP, registers, caller.cfa, &caller.sp);
	}
	free(frame);
	return caller;
}

static uint64_t cfa_of_rule(const struct sonde_rule *rule, const uint64_t *registers)
{
	int64_t off = rule->cfa_off, add = rule->cfa_add;

	switch (rule->cfa_kind) {
	case SONDE_CFA_SP:
		return registers[SP] + off;
	case SONDE_CFA_BP:
		return registers[BP] + off;
	case SONDE_CFA_REG:
		return registers[rule->cfa_reg] + off;
	case SONDE_CFA_DEREF_SP:
		return memory_at(registers[SP] + off) + add;
	case SONDE_CFA_DEREF_BP:
		return memory_at(registers[BP] + off) + add;
	case SONDE_CFA_PLT:
		return registers[SP] + off + ((registers[RA] & 15) >= rule->cfa_reg ? 8 : 0);
	}
	fail_msg("CFA kind %u", rule->cfa_kind);
	return 0;
}

static struct caller caller_by_rule(const struct sonde_rule *rule, uint64_t pc)
{
	struct caller caller = { .state = KNOWN, .has_bp = true };
	uint64_t registers[NR_REGISTERS];

	make_registers(pc, registers);
	caller.cfa = caller.sp = cfa_of_rule(rule, registers);
	caller.pc = memory_at(caller.cfa + rule->ra_off);
	switch (rule->bp_kind) {
	case SONDE_BP_SAME:
		caller.bp = registers[BP];
		break;
	case SONDE_BP_CFA:
		caller.bp = memory_at(caller.cfa + rule->bp_off);
		break;
	case SONDE_BP_BP:
		caller.bp = memory_at(registers[BP] + rule->bp_off);
		break;
	default:
		assert_int_equal(rule->bp_kind, SONDE_BP_UNDEFINED);
		caller.has_bp = false;
	}
	return caller;
}

static bool is_equal(const struct caller *a, const struct caller *b)
{
	return a->cfa == b->cfa && a->sp == b->sp && a->pc == b->pc && a->has_bp == b->has_bp && (!a->has_bp || a->bp == b->bp);
}

static void compare_at(const struct files *files, uint64_t pc, struct counts *counts)
{
	uint32_t nr_rules;
	uint16_t number = unwind_table_find(files->table, pc);
	const struct sonde_rule *rule = &rule_table_rules(files->rules, &nr_rules)[number];
	struct caller want = caller_by_libdw(files->cfi, pc), got;
	bool agrees = false;

	assert_true(number < nr_rules);
	counts->nr_pcs++;
	switch (rule->kind) {
	case SONDE_RULE_KIND_NONE:
		counts->nr_none++;
		agrees = want.state == NO_RULE;
		break;
	case SONDE_RULE_KIND_END:
		counts->nr_end++;
		agrees = want.state == UNDEFINED;
		break;
	case SONDE_RULE_KIND_SIGNAL:
		counts->nr_signal++;
		agrees = want.state == KNOWN && want.is_signal;
		break;
	case SONDE_RULE_KIND_UNSUPPORTED: /* libdw knows a rule that struct sonde_rule has no form for */
		counts->nr_unsupported++;
		agrees = want.state == KNOWN && !want.is_signal;
		break;
	default:
		counts->nr_step++;
		got = caller_by_rule(rule, pc);
		agrees = want.state == KNOWN && !want.is_signal && is_equal(&want, &got);
	}
	if (!agrees && counts->nr_differ++ < 10)
		print_error("  differs at %#" PRIx64 ": rule %u (kind %u, CFA kind %u %+d, bp kind %u %+d), libdw state %d\n", pc, number,
			    rule->kind, rule->cfa_kind, rule->cfa_off, rule->bp_kind, rule->bp_off, want.state);
}

static void compare_every_row(const struct files *files, struct counts *counts)
{
	const struct unwind_table *table = files->table;

	for (uint32_t block = 0; block < table->nr_blocks; block++) {
		for (uint32_t row = table->blocks[block]; row < table->blocks[block + 1]; row++) {
			uint64_t pc = table->base_vaddr + ((uint64_t)block << table->block_shift) + table->rows[row].low;

			compare_at(files, pc, counts);
			compare_at(files, pc - 1, counts);
		}
	}
}

static void compare_random(const struct files *files, struct counts *counts)
{
	uint32_t size = files->table->nr_blocks << files->table->block_shift;
	uint64_t seed = 1;

	for (uint32_t i = 0; i < NR_RANDOM_PCS; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		compare_at(files, files->table->base_vaddr + (seed >> 32) % size, counts);
	}
}

static void compare_file(const char *path)
{
	struct files files = { .rules = rule_table_new(SONDE_MAX_RULES) };
	struct counts counts = { 0 };
	struct diag diag = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC), dw_fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || dw_fd < 0)
		fail_msg("%s cannot be opened", path);
	if (elf_file_open_fd(fd, &diag, &files.elf) || unwind_table_build(files.elf, files.rules, &diag, &files.table))
		fail_msg("%s: %s", path, diag.text);
	files.dw_elf = elf_begin(dw_fd, ELF_C_READ_MMAP, NULL);
	files.cfi = dwarf_getcfi_elf(files.dw_elf);
	assert_non_null(files.cfi);
	if (files.table->nr_rows <= MAX_EXACT_ROWS)
		compare_every_row(&files, &counts);
	else
		compare_random(&files, &counts);
	counts.nr_rows = files.table->nr_rows;
	rule_table_rules(files.rules, &counts.nr_rules);
	print_message("%-60s %6u pcs, %7u rows, %4u rules: %u step, %u none, %u end, %u signal, %u unsupported, %u differ\n", path,
		      counts.nr_pcs, counts.nr_rows, counts.nr_rules, counts.nr_step, counts.nr_none, counts.nr_end, counts.nr_signal,
		      counts.nr_unsupported, counts.nr_differ);
	assert_int_equal(counts.nr_differ, 0);
	assert_true(counts.nr_step > counts.nr_pcs / 4);
	assert_true(counts.nr_unsupported <= counts.nr_pcs / 100);
	assert_int_equal(files.table->nr_bad_fdes, 0);
	dwarf_cfi_end(files.cfi);
	elf_end(files.dw_elf);
	close(dw_fd);
	unwind_table_free(files.table);
	elf_file_free(files.elf);
	rule_table_free(files.rules);
}

static void tables_agree_with_libdw(void **state)
{
	static const char *const patterns[] = {
		"/proc/self/exe",
		"/lib64/ld-linux-x86-64.so.2",
		"/lib/*-linux-gnu/libc.so.6",
		"/usr/lib/*-linux-gnu/libm.so.6",
		"/usr/lib/*-linux-gnu/libstdc++.so.6",
		"/usr/lib/*-linux-gnu/libcrypto.so.3",
		"/usr/bin/python3.*[0-9]",
		"/usr/bin/node",
		"/usr/lib/jvm/*/lib/server/libjvm.so",
		"/usr/lib/*-linux-gnu/libLLVM-*.so.1",
	};

	elf_version(EV_CURRENT);
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		glob_t found;

		if (glob(patterns[i], 0, NULL, &found))
			print_message("SKIPPED, not on this machine: %s\n", patterns[i]);
		else
			compare_file(found.gl_pathv[0]);
		globfree(&found);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_agree_with_libdw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
