// SPDX-License-Identifier: Apache-2.0
/* process_main's code: the JIT generates it when the runtime starts, and keeps its address in a std::unordered_map of libstdc++, whose
 * nodes are { next, key, value }. In the file, process_main looks it up there: the assembler's address, the map's place in it and the key
 * are in its instructions. What that code does tells the layout of frames. */
#include <errno.h>
#include <string.h>

#include "elf/dynamic_symbol.h"
#include "elf/elf_file.h"
#include "runtime/beam/beam_private.h"
#include "runtime/words.h"

#define MAX_INSTRUCTIONS 24
#define MAX_LABEL 4096
#define MAX_MAP_OFF 65536
#define MAP_FIRST 16   /* _M_before_begin */
#define MAP_COUNT 24
#define MAX_LABELS 1024
#define MAX_MAIN_BYTES 4096
#define SEARCH_WORDS 512
#define CALL_BYTES 5
#define MAX_CALLER_FRAME 4096
#define MAX_REGISTERS_BYTES (1 << 20)
#define MAIN_BEGIN_BYTES 22

enum { MOV_RM_IMM = 0xc7, MOV_R_IMM = 0xb8, MOV_R_RM = 0x8b, LEA = 0x8d, CALL = 0xe8, JE = 0x74, INDIRECT = 0xff, JMP = 4 };
enum { MOV_RM_R = 0x89, PUSH = 0x50, ARITHMETIC_IMM32 = 0x81, ARITHMETIC_IMM8 = 0x83, SUB = 5 };

struct main_shape {
	struct beam_naming *naming;
	bool is_exported;
};

/* It ends with a jump to what it found. */
static bool is_jump_near(struct beam_code *code)
{
	struct x86_instruction i;

	for (int nr = 0; nr < MAX_INSTRUCTIONS && !beam_code_next(code, &i); nr++) {
		if (i.opcode == INDIRECT)
			return (i.reg & 7) == JMP && i.rm != X86_NONE;
	}
	return false;
}

/* A beam_shape_fn. The map is looked up by a function, or in place: then the first of its members that are read is its first. */
static int read_main(const struct elf_file *elf, struct beam_code *code, void *arg)
{
	uint64_t assembler = 0, map = 0, label = 0;
	const struct main_shape *shape = arg;
	uint8_t holder = X86_NONE;
	struct x86_instruction i;

	for (int nr = 0; nr < MAX_INSTRUCTIONS; nr++) {
		if (beam_code_next(code, &i))
			return -ENOENT;
		if (i.opcode == MOV_R_RM && i.has_modrm && i.base == X86_RIP) {
			assembler = code->start + code->at + (uint64_t)i.displacement;
			holder = i.reg;
		} else if ((i.opcode == LEA || i.opcode == MOV_R_RM) && i.base == holder && holder != X86_NONE && i.displacement > 0) {
			map = !map || (uint64_t)i.displacement < map ? (uint64_t)i.displacement : map;
		} else if ((i.opcode == MOV_RM_IMM && i.base == X86_RSP) || ((i.opcode & ~7) == MOV_R_IMM && i.operand_bytes == 4)) {
			label = (uint64_t)i.immediate;
		} else if (i.opcode == CALL || i.opcode == JE) {
			break;
		}
	}
	if ((i.opcode != CALL && i.opcode != JE) || !assembler || !map || map >= MAX_MAP_OFF || !label || label >= MAX_LABEL ||
	    (!shape->is_exported && !is_jump_near(code)))
		return -ENOENT;
	shape->naming->assembler = assembler;
	shape->naming->labels = map | label << 32;
	return 0;
}

struct caller {
	uint64_t main_function;
	uint16_t frame;
};

static bool calls(const struct beam_code *code, uint64_t function)
{
	for (size_t off = 0; off + CALL_BYTES <= code->size; off++) {
		if (code->bytes[off] == CALL &&
		    code->start + off + CALL_BYTES + (uint64_t)(int64_t)(int32_t)u32_at(code->bytes, off + 1) == function)
			return true;
	}
	return false;
}

/* A beam_shape_fn: the function that calls process_main, and how its code begins: push %rbp; mov %rsp,%rbp; more of push; sub $imm,%rsp. */
static int read_caller(const struct elf_file *elf, struct beam_code *code, void *arg)
{
	struct caller *caller = arg;
	struct x86_instruction i;
	bool has_frame = false;
	uint64_t bytes = 0;

	if (!calls(code, caller->main_function))
		return -ENOENT;
	for (int nr = 0; nr < MAX_INSTRUCTIONS && !beam_code_next(code, &i) && i.opcode != CALL; nr++) {
		if (i.opcode == MOV_RM_R && i.reg == X86_RSP && i.rm == X86_RBP)
			has_frame = true;
		else if ((i.opcode & ~7) == PUSH && has_frame)
			bytes += 8;
		else if ((i.opcode == ARITHMETIC_IMM8 || i.opcode == ARITHMETIC_IMM32) && i.reg == SUB && i.rm == X86_RSP)
			bytes += (uint64_t)i.immediate;
	}
	caller->frame = has_frame && bytes <= MAX_CALLER_FRAME ? (uint16_t)bytes : 0;
	return 0;
}

int beam_main_find(const struct elf_file *elf, struct sonde_beam *ret_beam, struct beam_naming *ret_naming)
{
	struct dynamic_symbol symbol;
	struct main_shape shape = { ret_naming, !dynamic_symbol_find(elf, "process_main", &symbol) };
	struct caller caller = { 0 };
	uint64_t vaddr;

	if (beam_function_find(elf, "process_main", read_main, &shape, &caller.main_function))
		return -ENOENT;
	ret_beam->main_function = caller.main_function;
	ret_beam->caller_frame = beam_function_find(elf, NULL, read_caller, &caller, &vaddr) ? 0 : caller.frame;
	return 0;
}

/* The code of one label ends where that of another one begins. */
static int read_range(const struct runtime_memory *memory, uint64_t map, uint64_t label, struct sonde_code_range *ret_range,
		      uint64_t *ret_last)
{
	uint64_t node[3], next, start = 0, end = 0, last = 0, nr;
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
			last = node[2] > last ? node[2] : last;
			next = node[0];
		}
	}
	if (err)
		return err == -EFAULT ? -EAGAIN : err;
	if (!start || !end || end - start > MAX_MAIN_BYTES)
		return -EAGAIN;
	*ret_range = (struct sonde_code_range){ start, end };
	*ret_last = last;
	return 0;
}

static bool is_normal_exit(const struct beam_memory *of, uint64_t atoms, const uint64_t mfa[3])
{
	char name[sizeof("erts_beamasm:normal_exit")] = "";

	return !mfa[2] && !beam_append_atom(of, atoms, mfa[0], name, sizeof(name)) && !strcmp(name, "erts_beamasm") &&
	       !beam_append_atom(of, atoms, mfa[1], name, sizeof(name)) && !strcmp(name, "erts_beamasmnormal_exit");
}

/* The functions of the module erts_beamasm are behind the shared code, each behind its ErtsCodeInfo; but the module is in no table. */
static int find_normal_exit(const struct beam_memory *of, uint64_t atoms, uint64_t at, struct sonde_beam *beam)
{
	uint64_t words[SEARCH_WORDS];
	int err = beam_read(of, at & ~7ULL, words, sizeof(words));

	for (uint32_t i = 0; !err && i + 3 <= ARRAY_SIZE(words); i++) {
		if (is_normal_exit(of, atoms, words + i)) {
			beam->normal_exit = (at & ~7ULL) + 8 * (i + 3);
			return 0;
		}
	}
	return err ? err : -EAGAIN;
}

/* With frame pointers, the code that lets a process run loads rbp: mov frame_pointer(%r13),%rbp, a member behind `stop`. */
static int read_layout(const struct beam_memory *of, struct sonde_beam *beam)
{
	const uint8_t load[] = { 0x49, 0x8b, 0x6d, (uint8_t)(of->row->stop + 8) };
	uint64_t size = beam->main.end_pc - beam->main.start_pc;
	uint8_t code[MAX_MAIN_BYTES];
	int err = beam_read(of, beam->main.start_pc, code, size);

	if (!err)
		beam->has_frames = memmem(code, size, load, sizeof(load)) != NULL;
	return err;
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

int beam_main_read(const struct beam_memory *of, const struct beam_naming *naming, struct sonde_beam *beam)
{
	uint64_t load_bias = beam->process.load_bias, assembler, last;
	uint8_t code[MAIN_BEGIN_BYTES];
	int err = beam_read(of, naming->assembler + load_bias, &assembler, sizeof(assembler));

	if (!err && !assembler)
		err = -EAGAIN;
	if (!err)
		err = read_range(of->memory, assembler + (uint32_t)naming->labels, naming->labels >> 32, &beam->main, &last);
	if (!err)
		err = beam_read(of, beam->main.start_pc, code, sizeof(code));
	if (!err)
		err = read_begin(code, beam);
	if (!err)
		err = read_layout(of, beam);
	return err ? err : find_normal_exit(of, naming->atoms + load_bias, last, beam);
}
