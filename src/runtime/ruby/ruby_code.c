// SPDX-License-Identifier: Apache-2.0
/* What has no exported name, and is found in the code of functions that have one:
 *
 * - global_symbols (symbol.c): rb_id2str goes on in get_id_entry; that compares the number with .last_id, and reads .ids behind it. Before,
 *   rb_id2str compares the id with tLAST_OP_ID.
 * - how often the garbage collector ran (gc.c): rb_during_gc and rb_gc_count read it, and get there from ruby_current_vm_ptr.
 * - ruby_current_ec (vm.c), where it is hidden: rb_thread_current begins by reading it, by __tls_get_addr.
 *
 * Up to 2.7 the context is in a variable of the process, which has a name: that of the thread that holds the lock. */
#include <errno.h>

#include <elf.h>

#include "elf/dynamic_symbol.h"
#include "runtime/ruby/ruby_private.h"
#include "runtime/tls_access.h"
#include "runtime/x86_instruction.h"

#define MAX_INSTRUCTIONS 64
#define IDS 16 /* from last_id on */
#define CMP_BY_MODRM 7 /* of the opcode that all arithmetic with a constant shares */
#define MAX_OPERATOR 0xfff
#define MAX_GC_INSTRUCTIONS 16
#define MAX_GC_OFF 65536
#define DURING_GC_BIT 5

enum { CMP_RM_R = 0x39, CMP_R_RM = 0x3b, CMP_RAX_IMM32 = 0x3d };
enum { SHIFT_IMM8 = 0xc0, SHR = 5, RET = 0xc3, MOVZX_BYTE = 0x0fb6 };
enum { ARITHMETIC_IMM32 = 0x81, MOV_R_RM = 0x8b, LEA = 0x8d, CALL = 0xe8, JMP = 0xe9 };

/* The code of a function, as it is decoded. */
struct code {
	const struct elf_file *elf;
	uint64_t at;
};

static int begin(const struct elf_file *elf, const char *name, struct code *ret_code)
{
	struct dynamic_symbol function;

	if (elf_file_machine(elf) != EM_X86_64 || dynamic_symbol_find(elf, name, &function))
		return -ENOENT;
	*ret_code = (struct code){ elf, function.elf_vaddr };
	return 0;
}

static bool is_in_file(const struct x86_instruction *instruction)
{
	return instruction->has_modrm && instruction->base == X86_RIP;
}

int ruby_symbols_find(const struct elf_file *elf, struct ruby_naming *ret_naming)
{
	struct x86_instruction i;
	uint64_t last_id = 0;
	struct code code;

	*ret_naming = (struct ruby_naming){ 0 };
	if (begin(elf, "rb_id2str", &code))
		return -ENOENT;
	for (int nr = 0; nr < MAX_INSTRUCTIONS && !x86_instruction_next(code.elf, &code.at, &i); nr++) {
		uint64_t at = code.at + (uint64_t)i.displacement;
		bool is_limit = i.opcode == CMP_RAX_IMM32 || (i.opcode == ARITHMETIC_IMM32 && i.reg == CMP_BY_MODRM);

		if (is_limit && i.immediate > 0 && i.immediate <= MAX_OPERATOR)
			ret_naming->last_operator = ret_naming->last_operator ?: (uint64_t)i.immediate;
		else if (i.opcode == JMP && ret_naming->last_operator)
			code.at += (uint64_t)i.immediate;
		else if ((i.opcode == CMP_RM_R || i.opcode == CMP_R_RM) && is_in_file(&i))
			last_id = at;
		else if (i.opcode == MOV_R_RM && last_id && is_in_file(&i) && at == last_id + IDS)
			ret_naming->symbols = last_id;
		if (ret_naming->symbols)
			return ret_naming->last_operator ? 0 : -ENOENT;
	}
	return -ENOENT;
}

/* rb_during_gc: during_gc is bit 5 of the flags, behind mode, 2 bits. */
static bool find_flags(struct code *code, struct ruby_naming *naming)
{
	struct x86_instruction i;

	for (int nr = 0; nr < MAX_GC_INSTRUCTIONS && !x86_instruction_next(code->elf, &code->at, &i); nr++) {
		if ((i.opcode == LEA || i.opcode == MOV_R_RM) && is_in_file(&i) && !naming->vm) {
			naming->vm = code->at + (uint64_t)i.displacement;
			naming->is_pointer = i.opcode == MOV_R_RM;
		} else if (i.opcode == MOV_R_RM && i.displacement > 0 && i.displacement <= MAX_GC_OFF) {
			naming->vm_objspace = (uint32_t)i.displacement;
		} else if (i.opcode == MOVZX_BYTE && i.displacement > 0 && i.displacement <= MAX_GC_OFF) {
			naming->flags = (uint32_t)i.displacement;
		} else if (i.opcode == SHIFT_IMM8) {
			return naming->vm && naming->vm_objspace && naming->flags && i.reg == SHR && i.immediate == DURING_GC_BIT;
		}
	}
	return false;
}

/* rb_gc_count: the last thing that it reads is the number that it returns. */
static bool find_count(struct code *code, struct ruby_naming *naming)
{
	struct x86_instruction i;

	for (int nr = 0; nr < MAX_GC_INSTRUCTIONS && !x86_instruction_next(code->elf, &code->at, &i); nr++) {
		if (i.opcode == MOV_R_RM && i.base < X86_RIP && i.reg == X86_RAX && i.displacement > 0 && i.displacement <= MAX_GC_OFF)
			naming->count = (uint32_t)i.displacement;
		else if (i.opcode == RET)
			return naming->count;
	}
	return false;
}

void ruby_gc_find(const struct elf_file *elf, struct ruby_naming *naming)
{
	struct code during, count;

	if (begin(elf, "rb_during_gc", &during) || begin(elf, "rb_gc_count", &count) || !find_flags(&during, naming) ||
	    !find_count(&count, naming))
		naming->vm = 0;
}

int ruby_root_find(const struct elf_file *elf, struct sonde_tls *ret_root)
{
	struct dynamic_symbol global;
	struct x86_instruction i;
	struct code code;
	uint64_t got = 0;
	bool is_called = false;

	if (!tls_access_symbol(elf, "ruby_current_ec", ret_root))
		return 0;
	if (!dynamic_symbol_find(elf, "ruby_current_execution_context_ptr", &global)) {
		*ret_root = (struct sonde_tls){ .kind = SONDE_TLS_GLOBAL, .pc = global.elf_vaddr };
		return 0;
	}
	if (begin(elf, "rb_thread_current", &code))
		return -ENOENT;
	for (int nr = 0; nr < MAX_INSTRUCTIONS && !x86_instruction_next(code.elf, &code.at, &i); nr++) {
		if (i.opcode == LEA && is_in_file(&i) && i.reg == X86_RDI)
			got = code.at + (uint64_t)i.displacement;
		else if (i.opcode == CALL)
			is_called = got;
		else if (i.opcode == MOV_R_RM && is_called && i.base == X86_RAX && i.index == X86_NONE) {
			*ret_root = (struct sonde_tls){ .kind = SONDE_TLS_MODULE, .pc = got, .off = i.displacement };
			return 0;
		}
	}
	return -ENOENT;
}
