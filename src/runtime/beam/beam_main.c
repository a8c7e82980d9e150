// SPDX-License-Identifier: Apache-2.0
/* process_main's code: the JIT generates it when the runtime starts, and keeps its address in a std::unordered_map of libstdc++, whose
 * nodes are { next, key, value }. In the file, process_main looks it up there: the assembler's address, the map's place in it and the key
 * are in its instructions. */
#include <errno.h>

#include "elf/elf_file.h"
#include "runtime/beam/beam_private.h"
#include "runtime/words.h"
#include "runtime/x86_instruction.h"

#define MAX_INSTRUCTIONS 16
#define MAX_LABEL 4096
#define MAX_MAP_OFF 65536
#define MAP_FIRST 16   /* _M_before_begin */
#define MAP_COUNT 24
#define MAX_LABELS 1024
#define MAX_MAIN_BYTES 65536
#define MAX_REGISTERS_BYTES (1 << 20)
#define MAIN_BEGIN_BYTES 22

enum { MOV_RM_IMM = 0xc7, MOV_R_RM = 0x8b, LEA = 0x8d, CALL = 0xe8 };

int beam_main_find(const struct elf_file *elf, uint64_t elf_vaddr, struct beam_naming *ret_naming)
{
	uint64_t assembler = 0, map = 0, label = 0;
	struct x86_instruction i;

	for (int nr = 0; nr < MAX_INSTRUCTIONS; nr++) {
		if (x86_instruction_next(elf, &elf_vaddr, &i))
			return -ENOENT;
		if (i.opcode == MOV_R_RM && i.has_modrm && i.base == X86_RIP)
			assembler = elf_vaddr + (uint64_t)i.displacement;
		else if (i.opcode == LEA && i.reg == X86_RDI && i.base != X86_RIP && i.base != X86_RSP)
			map = (uint64_t)i.displacement;
		else if (i.opcode == MOV_RM_IMM && i.base == X86_RSP)
			label = (uint64_t)i.immediate;
		else if (i.opcode == CALL)
			break;
	}
	if (i.opcode != CALL || !assembler || !map || map >= MAX_MAP_OFF || !label || label >= MAX_LABEL)
		return -ENOENT;
	ret_naming->assembler = assembler;
	ret_naming->labels = map | label << 32;
	return 0;
}

/* The code of one label ends where that of another one begins. */
static int read_range(const struct runtime_memory *memory, uint64_t map, uint64_t label, struct sonde_code_range *ret_range)
{
	uint64_t node[3], next, start = 0, end = 0, nr;
	int err = memory->read(memory->arg, map + MAP_COUNT, &nr, sizeof(nr));

	for (int turn = 0; !err && turn < 2; turn++) { /* the first one finds the start */
		err = memory->read(memory->arg, map + MAP_FIRST, &next, sizeof(next));
		for (uint64_t i = 0; !err && next && i < nr && i < MAX_LABELS; i++) {
			err = memory->read(memory->arg, next, node, sizeof(node));
			if (err)
				break;
			if ((node[1] & 0xffffffff) == label)
				start = node[2];
			else if (turn && node[2] > start && (!end || node[2] < end))
				end = node[2];
			next = node[0];
		}
	}
	if (err)
		return err == -EFAULT ? -EAGAIN : err;
	if (!start || !end || end - start > MAX_MAIN_BYTES)
		return -EAGAIN;
	*ret_range = (struct sonde_code_range){ start, end };
	return 0;
}

/* Its first instructions: sub $imm32,%rsp; and $-64,%rsp; mov %rsp,(%rdi); lea disp(%rsp),%rbx. 0, or -EOPNOTSUPP: they are others. */
static int read_begin(const uint8_t code[MAIN_BEGIN_BYTES], struct sonde_beam *beam)
{
	static const uint8_t sub[] = { 0x48, 0x81, 0xec }, and_mov[] = { 0x48, 0x83, 0xe4, 0xc0, 0x48, 0x89, 0x27 },
			     lea8[] = { 0x48, 0x8d, 0x5c, 0x24 }, lea32[] = { 0x48, 0x8d, 0x9c, 0x24 };
	uint32_t registers = code[18];

	if (memcmp(code, sub, sizeof(sub)) || memcmp(code + 7, and_mov, sizeof(and_mov)))
		return -EOPNOTSUPP;
	if (!memcmp(code + 14, lea32, sizeof(lea32)))
		registers = u32_at(code, 18);
	else if (memcmp(code + 14, lea8, sizeof(lea8)))
		return -EOPNOTSUPP;
	if (registers > INT8_MAX + 1 || u32_at(code, 3) > MAX_REGISTERS_BYTES || u32_at(code, 3) & 7)
		return -EOPNOTSUPP;
	beam->main_bytes = u32_at(code, 3);
	beam->registers = (uint8_t)registers;
	return 0;
}

int beam_main_read(const struct beam_naming *naming, uint64_t load_bias, const struct runtime_memory *memory, struct sonde_beam *beam)
{
	uint64_t assembler;
	uint8_t code[MAIN_BEGIN_BYTES];
	int err = memory->read(memory->arg, naming->assembler + load_bias, &assembler, sizeof(assembler));

	if (!err && !assembler)
		err = -EAGAIN;
	if (!err)
		err = read_range(memory, assembler + (uint32_t)naming->labels, naming->labels >> 32, &beam->main);
	if (!err)
		err = memory->read(memory->arg, beam->main.start_pc, code, sizeof(code));
	return err ? err : read_begin(code, beam);
}
