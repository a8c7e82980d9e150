// SPDX-License-Identifier: Apache-2.0
/* global_symbols (symbol.c) has no exported name. rb_id2str, which is exported, goes on in get_id_entry; that compares the number with
 * .last_id, and reads .ids behind it. */
#include <errno.h>

#include <elf.h>

#include "elf/dynamic_symbol.h"
#include "runtime/ruby/ruby_private.h"
#include "runtime/x86_instruction.h"

#define MAX_INSTRUCTIONS 64
#define IDS 16 /* from last_id on */

enum { CMP_RM_R = 0x39, CMP_R_RM = 0x3b, MOV_R_RM = 0x8b, JMP = 0xe9, CALL = 0xe8 };

/* The code of a function, as it is decoded. */
struct code {
	const struct elf_file *elf;
	uint64_t at;
};

static int next(struct code *code, struct x86_instruction *ret_instruction)
{
	uint8_t bytes[X86_MAX_BYTES];

	if (elf_file_read_vaddr(code->elf, code->at, bytes, sizeof(bytes)) ||
	    x86_instruction_decode(bytes, sizeof(bytes), ret_instruction))
		return -ENOENT;
	code->at += ret_instruction->size_bytes;
	return 0;
}

/* Follows the jump or call at the end of a short function. */
static int follow(struct code *code)
{
	struct x86_instruction instruction;

	for (int i = 0; i < MAX_INSTRUCTIONS; i++) {
		if (next(code, &instruction))
			return -ENOENT;
		if (instruction.opcode != JMP && instruction.opcode != CALL)
			continue;
		code->at += (uint64_t)instruction.immediate;
		return 0;
	}
	return -ENOENT;
}

int ruby_symbols_find(const struct elf_file *elf, uint64_t *ret_symbols)
{
	struct code code = { .elf = elf };
	struct x86_instruction instruction;
	struct dynamic_symbol function;
	uint64_t last_id = 0, at;

	if (elf_file_machine(elf) != EM_X86_64 || dynamic_symbol_find(elf, "rb_id2str", &function))
		return -ENOENT;
	code.at = function.elf_vaddr;
	if (follow(&code))
		return -ENOENT;
	for (int i = 0; i < MAX_INSTRUCTIONS && !next(&code, &instruction); i++) {
		at = code.at + (uint64_t)instruction.displacement;
		if (!instruction.has_modrm || instruction.base != X86_RIP)
			continue;
		if ((instruction.opcode == CMP_RM_R || instruction.opcode == CMP_R_RM) && instruction.operand_bytes == 4)
			last_id = at;
		else if (instruction.opcode == MOV_R_RM && last_id && at == last_id + IDS) {
			*ret_symbols = last_id;
			return 0;
		}
	}
	return -ENOENT;
}
