// SPDX-License-Identifier: Apache-2.0
/* Where the table of modules' code is: erts_lookup_function_info (beam_ranges.c) reads it. A file that exports only what native functions
 * need (Debian's OTP 29) has one function that looks like it: all functions are tried, by PT_GNU_EH_FRAME. */
#include <errno.h>

#include "elf/dynamic_symbol.h"
#include "runtime/beam/beam_private.h"
#include "runtime/fde_index.h"

#define MAX_INSTRUCTIONS 96
#define MAX_BEFORE_TABLE 16 /* instructions until the table is known */
#define MAX_FIND_RANGE 6
#define MIN_FILE_ADDRESS 65536

enum { CALL = 0xe8, LEA = 0x8d, MOV_R_RM = 0x8b };

int beam_code_next(struct beam_code *code, struct x86_instruction *ret_instruction)
{
	if (x86_instruction_decode(code->bytes + code->at, code->size - code->at, ret_instruction))
		return -ENOENT;
	code->at += ret_instruction->size_bytes;
	return 0;
}

static int try_function(const struct elf_file *elf, uint64_t start, uint64_t end, beam_shape_fn *test, void *arg)
{
	struct beam_code code = { .start = start };

	code.size = end > start && end - start < sizeof(code.bytes) ? end - start : sizeof(code.bytes);
	return elf_file_read_vaddr(elf, start, code.bytes, code.size) ? -ENOENT : test(elf, &code, arg);
}

int beam_function_find(const struct elf_file *elf, const char *name, beam_shape_fn *test, void *arg, uint64_t *ret_vaddr)
{
	CLEANUP(fde_index_done) struct fde_index index = { 0 };
	struct dynamic_symbol symbol;
	uint32_t nr_found = 0;

	if (name && !dynamic_symbol_find(elf, name, &symbol)) {
		*ret_vaddr = symbol.elf_vaddr;
		return try_function(elf, symbol.elf_vaddr, symbol.elf_vaddr + symbol.size_bytes, test, arg);
	}
	if (fde_index_read(elf, &index))
		return -ENOENT;
	for (uint32_t i = 0; i + 1 < index.nr && nr_found < 2; i++) {
		uint64_t start = fde_index_pc(&index, i);

		if (try_function(elf, start, fde_index_pc(&index, i + 1), test, arg))
			continue;
		*ret_vaddr = start;
		nr_found++;
	}
	return nr_found == 1 ? 0 : -ENOENT;
}

struct lookup {
	const struct beam_row *row;
	uint64_t active_index, ranges;
};

/* find_range reads the_active_code_index and r[]: it takes r's address, or reads r's members in a program at a fixed address. The first
 * member has the lowest one. */
static void note_table(struct lookup *lookup, const struct x86_instruction *i, uint64_t at)
{
	uint64_t place = (uint64_t)i->displacement;

	if (i->opcode == MOV_R_RM && i->base == X86_RIP && i->operand_bytes == 4 && !lookup->active_index)
		lookup->active_index = at + place;
	else if (i->opcode == LEA && i->base == X86_RIP && !lookup->ranges)
		lookup->ranges = at + place;
	else if (i->opcode == MOV_R_RM && i->base < X86_RIP && i->displacement >= MIN_FILE_ADDRESS &&
		 (!lookup->ranges || place < lookup->ranges))
		lookup->ranges = place;
}

static bool has_table(const struct lookup *lookup)
{
	return lookup->active_index && lookup->ranges;
}

static void note_find_range(struct lookup *lookup, const struct elf_file *elf, uint64_t at)
{
	struct x86_instruction i;

	for (int nr = 0; nr < MAX_FIND_RANGE && !has_table(lookup) && !x86_instruction_next(elf, &at, &i); nr++)
		note_table(lookup, &i, at);
}

/* A beam_shape_fn. */
static int read_lookup(const struct elf_file *elf, struct beam_code *code, void *arg)
{
	struct lookup *to = arg, lookup = { .row = to->row };
	bool has_functions = false, has_lines = false, has_called = false;
	struct x86_instruction i;

	for (int nr = 0; nr < MAX_INSTRUCTIONS && !(has_functions && has_lines); nr++) {
		if (beam_code_next(code, &i) || (nr > MAX_BEFORE_TABLE && !has_table(&lookup)))
			return -ENOENT;
		if (i.opcode == CALL && !has_called) {
			has_called = true;
			note_find_range(&lookup, elf, code->start + code->at + (uint64_t)i.immediate);
		} else if (!has_called) {
			note_table(&lookup, &i, code->start + code->at);
		}
		has_functions |= i.opcode == LEA && i.base < X86_RIP && i.base != X86_RSP && i.index == X86_NONE &&
				 i.displacement == to->row->functions;
		has_lines |= i.opcode == MOV_R_RM && i.base < X86_RIP && i.base != X86_RSP && i.displacement == to->row->line_table;
	}
	if (!has_functions || !has_lines || !has_table(&lookup))
		return -ENOENT;
	*to = lookup;
	return 0;
}

int beam_lookup_find(const struct elf_file *elf, const struct beam_row *row, struct sonde_beam *ret_beam)
{
	struct lookup lookup = { .row = row };
	struct dynamic_symbol index;
	uint64_t vaddr;

	if (beam_function_find(elf, "erts_lookup_function_info", read_lookup, &lookup, &vaddr))
		return -ENOENT;
	if (!dynamic_symbol_find(elf, "the_active_code_index", &index) && index.elf_vaddr != lookup.active_index)
		return -ENOENT;
	ret_beam->active_index = lookup.active_index;
	ret_beam->ranges = lookup.ranges;
	return 0;
}
