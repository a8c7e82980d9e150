// SPDX-License-Identifier: Apache-2.0
#include "runtime/tls_code.h"

#include <errno.h>
#include <string.h>

#include "elf/dynamic_relocation.h"
#include "elf/dynamic_symbol.h"
#include "runtime/x86_instruction.h"

#define NR_REGISTERS 16
#define MAX_CALLS 4	     /* nested calls; a PLT stub counts too */
#define MAX_WAYS 16	     /* still to be followed */
#define MAX_INSTRUCTIONS 512 /* in total */

enum kind {
	UNKNOWN,
	NUMBER,	  /* off */
	ADDRESS,  /* pc + off, as linked */
	WORD,	  /* the 64-bit word at pc, + off */
	KEY,	  /* the 32-bit number at pc */
	POINTER,  /* thread pointer + off */
	VARIABLE, /* the address of the thread's variable {tls_kind, pc, off} */
	RESULT,	  /* the value of that variable */
};

struct value {
	enum kind kind;
	uint8_t tls_kind;
	uint64_t pc;
	int64_t off;
};

struct way {
	struct value registers[NR_REGISTERS];
	uint64_t pc;
	uint64_t returns[MAX_CALLS];
	uint32_t nr_calls;
	bool called_unknown; /* a call was skipped: it may never have returned */
};

struct follower {
	const struct elf_file *elf;
	struct dynamic_section section;
	bool has_section;
	uint32_t budget, nr_instructions;
	struct way way; /* the one that is followed now */
	struct way ways[MAX_WAYS];
	uint32_t nr_ways;
	struct value result; /* UNKNOWN: none yet */
	bool is_contradicted;
};

static const struct value unknown = { .kind = UNKNOWN };

static struct value number(int64_t off)
{
	return (struct value){ .kind = NUMBER, .off = off };
}

static int find_relocation(struct follower *f, uint64_t slot, struct dynamic_relocation *ret_relocation)
{
	return f->has_section ? dynamic_relocation_find(f->elf, &f->section, slot, &f->budget, ret_relocation) : -ENOENT;
}

/* The content of a GOT slot, if the dynamic linker puts the address of something in this file there. */
static struct value resolve(struct follower *f, struct value value)
{
	struct dynamic_relocation relocation;

	if (value.kind != WORD || find_relocation(f, value.pc, &relocation) || relocation.type != R_X86_64_GLOB_DAT ||
	    !relocation.symbol_elf_vaddr)
		return unknown;
	return (struct value){ .kind = ADDRESS, .pc = relocation.symbol_elf_vaddr, .off = value.off };
}

static struct value add(struct value a, struct value b)
{
	if (b.kind == NUMBER || b.kind == POINTER) {
		struct value other = a;

		a = b;
		b = other;
	}
	if (a.kind == NUMBER && b.kind != UNKNOWN && b.kind != KEY && b.kind != RESULT) {
		b.off = (int64_t)((uint64_t)b.off + (uint64_t)a.off);
		return b;
	}
	if (a.kind == POINTER && b.kind == NUMBER) {
		a.off = (int64_t)((uint64_t)a.off + (uint64_t)b.off);
		return a;
	}
	if (a.kind == POINTER && b.kind == WORD)
		return (struct value){
			.kind = VARIABLE, .tls_kind = SONDE_TLS_OFFSET, .pc = b.pc, .off = (int64_t)((uint64_t)a.off + (uint64_t)b.off)
		};
	return unknown;
}

static struct value register_value(const struct follower *f, uint8_t i)
{
	return i < NR_REGISTERS ? f->way.registers[i] : unknown;
}

static void set_register(struct follower *f, uint8_t i, struct value value)
{
	if (i < NR_REGISTERS)
		f->way.registers[i] = value;
}

/* The address of a memory operand; way.pc is the address of the next instruction already. */
static struct value address_of(struct follower *f, const struct x86_instruction *i)
{
	struct value sum = number(i->displacement);

	if (i->base == X86_RIP)
		sum = add(sum, (struct value){ .kind = ADDRESS, .pc = f->way.pc });
	else if (i->base != X86_NONE)
		sum = add(sum, register_value(f, i->base));
	if (i->index != X86_NONE)
		sum = i->scale == 1 ? add(sum, register_value(f, i->index)) : unknown;
	return sum;
}

static struct value load(struct follower *f, const struct x86_instruction *i)
{
	struct value at = address_of(f, i);

	if (i->is_fs)
		at = add((struct value){ .kind = POINTER }, at);
	else if (at.kind == WORD)
		at = resolve(f, at);
	if (at.kind == ADDRESS && (i->operand_bytes == 8 || i->operand_bytes == 4))
		return (struct value){ .kind = i->operand_bytes == 8 ? WORD : KEY, .pc = at.pc + (uint64_t)at.off };
	if (i->operand_bytes != 8)
		return unknown;
	if (at.kind == POINTER && !at.off) /* the thread pointer points to itself */
		return at;
	if (at.kind == POINTER)
		return (struct value){ .kind = RESULT, .tls_kind = SONDE_TLS_STATIC, .off = at.off };
	if (at.kind != VARIABLE)
		return unknown;
	at.kind = RESULT;
	return at;
}

static struct value operand(struct follower *f, const struct x86_instruction *i)
{
	struct value value;

	if (i->rm == X86_NONE)
		return load(f, i);
	value = register_value(f, i->rm);
	return i->operand_bytes == 8 || (i->operand_bytes == 4 && value.kind == KEY) ? value : unknown;
}

static void clobber(struct follower *f)
{
	static const uint8_t lost[] = { X86_RAX, X86_RCX, X86_RDX, X86_RSI, X86_RDI, X86_R8, X86_R9, X86_R10, X86_R11 };

	for (size_t i = 0; i < ARRAY_SIZE(lost); i++)
		f->way.registers[lost[i]] = unknown;
}

static bool is_same(const struct value *a, const struct value *b)
{
	return a->tls_kind == b->tls_kind && a->pc == b->pc && a->off == b->off;
}

/* Handles a return. true: continue in the caller. */
static bool go_back(struct follower *f)
{
	const struct value *value = &f->way.registers[X86_RAX];

	if (f->way.nr_calls) {
		f->way.pc = f->way.returns[--f->way.nr_calls];
		return true;
	}
	if (value->kind == RESULT) {
		if (f->result.kind == RESULT && !is_same(&f->result, value))
			f->is_contradicted = true;
		f->result = *value;
	} else if (value->kind != NUMBER && !f->way.called_unknown) { /* a number: no variable (yet) */
		f->is_contradicted = true;
	}
	return false;
}

/* Treats the current function as returned without following it further. */
static bool skip_call(struct follower *f)
{
	f->way.called_unknown = true;
	clobber(f);
	return go_back(f);
}

static bool enter(struct follower *f, uint64_t pc, bool is_call)
{
	if (is_call) {
		if (f->way.nr_calls == MAX_CALLS) {
			f->way.called_unknown = true;
			clobber(f);
			return true;
		}
		f->way.returns[f->way.nr_calls++] = f->way.pc;
	}
	f->way.pc = pc;
	return true;
}

/* The result of the C library's functions, UNKNOWN for others. */
static struct value library_result(const struct follower *f, const char *name)
{
	const struct value *argument = &f->way.registers[X86_RDI];

	if (!strcmp(name, "__tls_get_addr") && argument->kind == ADDRESS)
		return (struct value){ .kind = VARIABLE, .tls_kind = SONDE_TLS_MODULE, .pc = argument->pc + (uint64_t)argument->off };
	if ((!strcmp(name, "pthread_getspecific") || !strcmp(name, "__pthread_getspecific")) && argument->kind == KEY)
		return (struct value){ .kind = RESULT, .tls_kind = SONDE_TLS_KEY, .pc = argument->pc };
	return unknown;
}

/* A call or jump through a GOT slot. */
static bool enter_slot(struct follower *f, const struct x86_instruction *i, bool is_call)
{
	struct value slot = address_of(f, i), result;
	struct dynamic_relocation relocation = { .name = "" };

	if (slot.kind == ADDRESS && !i->is_fs && !find_relocation(f, slot.pc + (uint64_t)slot.off, &relocation)) {
		if (relocation.type == R_X86_64_TLSDESC && is_call) { /* all other registers are preserved */
			f->way.registers[X86_RAX] = (struct value){ .kind = WORD, .pc = slot.pc + (uint64_t)slot.off + 8 };
			return true;
		}
		if (relocation.symbol_elf_vaddr)
			return enter(f, relocation.symbol_elf_vaddr, is_call);
	}
	result = library_result(f, relocation.name);
	clobber(f);
	f->way.registers[X86_RAX] = result;
	f->way.called_unknown |= result.kind == UNKNOWN;
	return is_call || go_back(f);
}

static void fork_way(struct follower *f, uint64_t pc)
{
	if (f->nr_ways == MAX_WAYS) {
		f->is_contradicted = true;
		return;
	}
	f->ways[f->nr_ways] = f->way;
	f->ways[f->nr_ways++].pc = pc;
}

static void set_byte_register(struct follower *f, const struct x86_instruction *i, uint8_t number_)
{
	set_register(f, !i->has_rex && i->operand_bytes == 1 && number_ >= 4 && number_ < 8 ? number_ - 4 : number_, unknown);
}

/* add, or, adc, sbb, and, sub, xor, cmp; `to` X86_NONE: memory. */
static void calculate(struct follower *f, const struct x86_instruction *i, uint8_t operation, uint8_t to, struct value other,
		      bool is_itself)
{
	if (operation == 7)
		return;
	if (is_itself && i->operand_bytes >= 4 && (operation == 5 || operation == 6)) {
		set_register(f, to, number(0));
	} else if (i->operand_bytes == 8 && (operation == 0 || (operation == 5 && other.kind == NUMBER && other.off != INT64_MIN))) {
		if (operation == 5)
			other.off = -other.off;
		set_register(f, to, add(register_value(f, to), other));
	} else {
		set_byte_register(f, i, to);
	}
}

static void do_arithmetic(struct follower *f, const struct x86_instruction *i)
{
	uint8_t operation = (uint8_t)(i->opcode >> 3);

	if ((i->opcode & 7) >= 4)
		calculate(f, i, operation, X86_RAX, number(i->immediate), false);
	else if (i->opcode & 2)
		calculate(f, i, operation, i->reg, operand(f, i), i->reg == i->rm);
	else
		calculate(f, i, operation, i->rm, register_value(f, i->reg), i->reg == i->rm);
}

/* The value after a move of the operand's size; a 32-bit value stays whole if it has no more bits. */
static struct value cut(const struct x86_instruction *i, struct value value)
{
	if (i->operand_bytes == 8 || (i->operand_bytes == 4 && value.kind == KEY))
		return value;
	if (i->operand_bytes == 4 && value.kind == NUMBER)
		return number((int64_t)(uint32_t)value.off);
	return unknown;
}

/* Emulates an instruction that does not jump. false: unknown instruction. */
static bool do_plain(struct follower *f, const struct x86_instruction *i)
{
	switch (i->opcode) {
	case 0x00 ... 0x3f:
		do_arithmetic(f, i);
		break;
	case 0x80:
	case 0x81:
	case 0x83:
		calculate(f, i, i->reg & 7, i->rm, number(i->immediate), false);
		break;
	case 0x8b:
		set_register(f, i->reg, operand(f, i));
		break;
	case 0x89:
		set_register(f, i->rm, cut(i, register_value(f, i->reg)));
		break;
	case 0x8d:
		set_register(f, i->reg, i->operand_bytes == 8 ? address_of(f, i) : unknown);
		break;
	case 0xc7:
		set_register(f, i->rm, cut(i, number(i->immediate)));
		break;
	case 0xb8 ... 0xbf:
		set_register(f, i->reg, cut(i, number(i->immediate)));
		break;
	case 0x58 ... 0x5f: /* pop */
		set_register(f, i->reg, unknown);
		break;
	case 0xc9: /* leave */
		set_register(f, X86_RBP, unknown);
		break;
	case 0x50 ... 0x57: /* push, test, nop */
	case 0x68:
	case 0x6a:
	case 0x84:
	case 0x85:
	case 0x90:
	case 0xa8:
	case 0xa9:
	case 0x0f1e:
	case 0x0f1f:
		break;
	case 0xb0 ... 0xb7:
	case 0x8a:
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x0f40 ... 0x0f4f: /* cmov */
	case 0x0faf:
	case 0x0fb6:
	case 0x0fb7:
	case 0x0fbe:
	case 0x0fbf:
		set_byte_register(f, i, i->reg);
		break;
	case 0x88:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xd0 ... 0xd3:
	case 0xfe:
	case 0x0f90 ... 0x0f9f: /* setcc */
		set_byte_register(f, i, i->rm);
		break;
	case 0xf6:
	case 0xf7:
		if ((i->reg & 7) >= 4) { /* mul, div */
			set_register(f, X86_RAX, unknown);
			set_register(f, X86_RDX, unknown);
		} else if ((i->reg & 7) >= 2) {
			set_byte_register(f, i, i->rm);
		}
		break;
	default:
		return false;
	}
	return true;
}

static bool do_group5(struct follower *f, const struct x86_instruction *i)
{
	switch (i->reg & 7) {
	case 0: /* inc, dec */
	case 1:
		set_register(f, i->rm, unknown);
		return true;
	case 2:
	case 4:
		if (i->rm == X86_NONE)
			return enter_slot(f, i, (i->reg & 7) == 2);
		if ((i->reg & 7) == 4)
			return skip_call(f);
		f->way.called_unknown = true;
		clobber(f);
		return true;
	case 6: /* push */
		return true;
	default:
		return false;
	}
}

/* Emulates one instruction. true: continue on this way. */
static bool step(struct follower *f)
{
	struct x86_instruction i;
	uint8_t bytes[X86_MAX_BYTES];
	size_t size = sizeof(bytes);

	while (size && elf_file_read_vaddr(f->elf, f->way.pc, bytes, size)) /* near the end of a segment */
		size--;
	if (x86_instruction_decode(bytes, size, &i))
		return f->way.nr_calls && skip_call(f);
	f->way.pc += i.size_bytes;
	switch (i.opcode) {
	case 0xc3:
	case 0xc2:
		return go_back(f);
	case 0xe8:
	case 0xe9:
		return enter(f, f->way.pc + (uint64_t)i.immediate, i.opcode == 0xe8);
	case 0xeb:
		return enter(f, f->way.pc + (uint64_t)i.immediate, false);
	case 0x70 ... 0x7f:
	case 0x0f80 ... 0x0f8f:
		fork_way(f, f->way.pc + (uint64_t)i.immediate);
		return true;
	case 0xff:
		return do_group5(f, &i);
	case 0xcc: /* int3, hlt, ud2: never reached */
	case 0xf4:
	case 0x0f0b:
		return false;
	default:
		return do_plain(f, &i) || (f->way.nr_calls && skip_call(f));
	}
}

int tls_code_follow(const struct elf_file *elf, uint64_t elf_vaddr, struct sonde_tls *ret_tls)
{
	CLEANUP(freep) struct follower *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->elf = elf;
	f->budget = DYNAMIC_RELOCATION_BUDGET;
	f->has_section = !dynamic_section_read(elf, &f->section);
	f->ways[f->nr_ways++] = (struct way){ .pc = elf_vaddr };
	while (f->nr_ways && !f->is_contradicted) {
		f->way = f->ways[--f->nr_ways];
		do {
			if (f->nr_instructions++ == MAX_INSTRUCTIONS)
				return -EOPNOTSUPP;
		} while (step(f));
	}
	if (f->is_contradicted || f->result.kind != RESULT)
		return -EOPNOTSUPP;
	*ret_tls = (struct sonde_tls){ .pc = f->result.pc, .off = f->result.off, .kind = f->result.tls_kind };
	return 0;
}
