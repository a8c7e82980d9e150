// SPDX-License-Identifier: Apache-2.0
#include "runtime/x86_instruction.h"

#include <errno.h>

#include "base/reader.h"
#include "elf/elf_file.h"

#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

enum shape { /* bits */
	SHAPE_NONE = 0,
	SHAPE_MODRM = 1,
	SHAPE_IMM8 = 2,
	SHAPE_IMM16 = 4,
	SHAPE_IMM = 8,	   /* 4 bytes; 2 with 16-bit operands */
	SHAPE_IMM64 = 16,  /* same size as the operand */
	SHAPE_REL32 = 32,
	SHAPE_UNKNOWN = 64,
};

static enum shape shape_of_two_bytes(uint8_t opcode)
{
	if (opcode == 0x0b) /* ud2 */
		return SHAPE_NONE;
	if (opcode >> 4 == 8)
		return SHAPE_REL32;
	if (opcode == 0x1e || opcode == 0x1f || opcode >> 4 == 4 || opcode >> 4 == 9 || opcode == 0xaf || opcode == 0xb6 ||
	    opcode == 0xb7 || opcode == 0xbe || opcode == 0xbf)
		return SHAPE_MODRM;
	return SHAPE_UNKNOWN;
}

static enum shape shape_of(uint8_t opcode)
{
	if (opcode < 0x40)
		return (opcode & 7) < 4 ? SHAPE_MODRM : (opcode & 7) == 4 ? SHAPE_IMM8 : (opcode & 7) == 5 ? SHAPE_IMM : SHAPE_UNKNOWN;
	switch (opcode) {
	case 0x50 ... 0x5f:
	case 0x90:
	case 0xc3:
	case 0xc9:
	case 0xcc:
	case 0xf4:
		return SHAPE_NONE;
	case 0x63:
	case 0x84 ... 0x8b:
	case 0x8d:
	case 0xd0 ... 0xd3:
	case 0xf6:
	case 0xf7:
	case 0xfe:
	case 0xff:
		return SHAPE_MODRM;
	case 0x69:
	case 0x81:
	case 0xc7:
		return SHAPE_MODRM | SHAPE_IMM;
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xc0:
	case 0xc1:
	case 0xc6:
		return SHAPE_MODRM | SHAPE_IMM8;
	case 0x68:
	case 0xa9:
		return SHAPE_IMM;
	case 0x6a:
	case 0x70 ... 0x7f:
	case 0xa8:
	case 0xb0 ... 0xb7:
	case 0xeb:
		return SHAPE_IMM8;
	case 0xb8 ... 0xbf:
		return SHAPE_IMM64;
	case 0xc2:
		return SHAPE_IMM16;
	case 0xe8:
	case 0xe9:
		return SHAPE_REL32;
	default:
		return SHAPE_UNKNOWN;
	}
}

static void read_memory(struct reader *r, uint8_t mod, uint8_t rm, uint8_t rex, struct x86_instruction *i)
{
	bool has_disp32 = mod == 2;

	i->base = rm | (rex & REX_B) << 3;
	if (rm == 4) {
		uint8_t sib = reader_u8(r);

		i->base = (sib & 7) | (rex & REX_B) << 3;
		i->index = (sib >> 3 & 7) | (rex & REX_X) << 2;
		i->scale = (uint8_t)(1 << (sib >> 6));
		if (i->index == X86_RSP)
			i->index = X86_NONE;
		if (!mod && (sib & 7) == 5) {
			i->base = X86_NONE;
			has_disp32 = true;
		}
	} else if (!mod && rm == 5) {
		i->base = X86_RIP;
		has_disp32 = true;
	}
	if (mod == 1)
		i->displacement = (int8_t)reader_u8(r);
	else if (has_disp32)
		i->displacement = (int32_t)reader_u32(r);
}

static void read_modrm(struct reader *r, uint8_t rex, struct x86_instruction *i)
{
	uint8_t modrm = reader_u8(r);

	i->has_modrm = true;
	i->reg = (modrm >> 3 & 7) | (rex & REX_R) << 1;
	if (modrm >> 6 == 3)
		i->rm = (modrm & 7) | (rex & REX_B) << 3;
	else
		read_memory(r, modrm >> 6, modrm & 7, rex, i);
}

static void read_immediate(struct reader *r, enum shape shape, struct x86_instruction *i)
{
	if (shape & SHAPE_IMM8)
		i->immediate = (int8_t)reader_u8(r);
	else if (shape & SHAPE_IMM16)
		i->immediate = reader_u16(r);
	else if (shape & SHAPE_IMM64 && i->operand_bytes == 8)
		i->immediate = (int64_t)reader_u64(r);
	else if (shape & (SHAPE_IMM | SHAPE_IMM64) && i->operand_bytes == 2)
		i->immediate = (int16_t)reader_u16(r);
	else if (shape & (SHAPE_IMM | SHAPE_IMM64 | SHAPE_REL32))
		i->immediate = (int32_t)reader_u32(r);
}

/* Reads the prefixes; the last byte before the opcode may be a REX. Returns the first byte of the opcode. */
static uint8_t read_prefixes(struct reader *r, struct x86_instruction *i, uint8_t *ret_rex)
{
	uint8_t byte;

	for (;;) {
		byte = reader_u8(r);
		if (r->bad)
			return 0;
		if (byte == 0x64)
			i->is_fs = true;
		else if (byte == 0x66)
			i->operand_bytes = 2;
		else if (byte != 0xf2 && byte != 0xf3 && byte != 0x2e && byte != 0x3e)
			break;
	}
	if (byte >> 4 == 4) {
		*ret_rex = byte & 15;
		i->has_rex = true;
		if (byte & REX_W)
			i->operand_bytes = 8;
		byte = reader_u8(r);
	}
	return byte;
}

static bool is_of_bytes(uint16_t opcode)
{
	return (opcode < 0x40 && (opcode & 7) < 6 && !(opcode & 1)) || opcode == 0x80 || opcode == 0x84 || opcode == 0x86 ||
	       opcode == 0x88 || opcode == 0x8a || (opcode & 0xf8) == 0xb0 || opcode == 0xc0 || opcode == 0xc6 || opcode == 0xd0 ||
	       opcode == 0xd2 || opcode == 0xf6 || opcode == 0xfe || opcode >> 4 == 0x0f9;
}

int x86_instruction_decode(const uint8_t *bytes, size_t size, struct x86_instruction *ret_instruction)
{
	struct x86_instruction i = { .operand_bytes = 4, .reg = X86_NONE, .rm = X86_NONE, .base = X86_NONE, .index = X86_NONE, .scale = 1 };
	struct reader r = reader_of(bytes, size < X86_MAX_BYTES ? size : X86_MAX_BYTES);
	uint8_t rex = 0;
	enum shape shape;

	i.opcode = read_prefixes(&r, &i, &rex);
	if (i.opcode == 0x0f) {
		i.opcode = (uint16_t)(0x0f00 | reader_u8(&r));
		shape = shape_of_two_bytes((uint8_t)i.opcode);
	} else {
		shape = shape_of((uint8_t)i.opcode);
	}
	if (r.bad)
		return -EBADMSG;
	if (shape & SHAPE_UNKNOWN)
		return -EOPNOTSUPP;
	if (is_of_bytes(i.opcode))
		i.operand_bytes = 1;
	if (shape & SHAPE_MODRM)
		read_modrm(&r, rex, &i);
	else
		i.reg = (uint8_t)((i.opcode & 7) | (rex & REX_B) << 3); /* for opcodes that contain a register number */
	if ((i.opcode == 0xf6 || i.opcode == 0xf7) && (i.reg & 7) < 2) /* test */
		shape |= i.opcode == 0xf6 ? SHAPE_IMM8 : SHAPE_IMM;
	read_immediate(&r, shape, &i);
	if (r.bad)
		return -EBADMSG;
	i.size_bytes = (uint8_t)(r.pos - bytes);
	*ret_instruction = i;
	return 0;
}

int x86_instruction_next(const struct elf_file *elf, uint64_t *at, struct x86_instruction *ret_instruction)
{
	uint8_t bytes[X86_MAX_BYTES];

	if (elf_file_read_vaddr(elf, *at, bytes, sizeof(bytes)) || x86_instruction_decode(bytes, sizeof(bytes), ret_instruction))
		return -ENOENT;
	*at += ret_instruction->size_bytes;
	return 0;
}
