// SPDX-License-Identifier: Apache-2.0
#include "elf/code_end.h"

#include <elf.h>
#include <stdbool.h>

#include "base/reader.h"

struct insn {
	size_t size;	/* 0: not known */
	bool is_end;	/* control does not come to the next one */
	bool is_branch; /* it may also go to `target` */
	int64_t target; /* from the instruction's end on */
};

struct x86 {
	struct reader r;
	struct insn insn;
	bool is_16, is_32_address, is_rex_w;
	uint8_t reg; /* of the ModRM byte */
};

static uint8_t x86_modrm(struct x86 *x)
{
	uint8_t modrm = reader_u8(&x->r), mod = modrm >> 6, rm = modrm & 7;

	x->reg = modrm >> 3 & 7;
	if (mod == 3)
		return modrm;
	if (rm == 4) {
		uint8_t sib = reader_u8(&x->r);

		if (mod == 0 && (sib & 7) == 5)
			reader_skip(&x->r, 4);
	}
	if (mod == 1)
		reader_skip(&x->r, 1);
	else if (mod == 2 || (mod == 0 && rm == 5))
		reader_skip(&x->r, 4);
	return modrm;
}

static void x86_branch(struct x86 *x, size_t size)
{
	x->insn.is_branch = true;
	x->insn.target = size == 1 ? (int8_t)reader_u8(&x->r) : (int32_t)reader_u32(&x->r);
}

static void x86_imm(struct x86 *x) /* as wide as the operand, four bytes at most */
{
	reader_skip(&x->r, x->is_16 ? 2 : 4);
}

/* Of the map behind 0f; with `is_vex` its VEX and EVEX forms. */
static void x86_two_bytes(struct x86 *x, uint8_t op, bool is_vex)
{
	if (op == 0x77)
		return;
	if (!is_vex) {
		if (op >= 0x80 && op <= 0x8f) {
			x86_branch(x, 4);
			return;
		}
		x->insn.is_end = op == 0x0b; /* ud2 */
		if ((op >= 0x05 && op <= 0x0b) || op == 0x0e || (op >= 0x30 && op <= 0x37) || (op >= 0xa0 && op <= 0xa2) ||
		    (op >= 0xa8 && op <= 0xaa) || (op >= 0xc8 && op <= 0xcf))
			return;
	}
	x86_modrm(x);
	if ((op >= 0x70 && op <= 0x73) || op == 0xc2 || (op >= 0xc4 && op <= 0xc6) || (!is_vex && (op == 0xa4 || op == 0xac || op == 0xba)))
		reader_skip(&x->r, 1);
}

static void x86_in_map(struct x86 *x, uint8_t map, bool is_vex)
{
	uint8_t op = reader_u8(&x->r);

	if (map == 1) {
		x86_two_bytes(x, op, is_vex);
	} else if (map == 2 || map == 3) {
		x86_modrm(x);
		reader_skip(&x->r, map == 3);
	} else {
		reader_fail(&x->r);
	}
}

static void x86_escape(struct x86 *x)
{
	uint8_t op = reader_u8(&x->r);

	if (op == 0x38 || op == 0x3a)
		x86_in_map(x, op == 0x38 ? 2 : 3, false);
	else
		x86_two_bytes(x, op, false);
}

/* What a ModRM byte does not follow. False: it does. */
static bool x86_without_modrm(struct x86 *x, uint8_t op)
{
	if (op < 0x40 && (op & 7) >= 4) { /* add $imm, %al and the like; those of segment registers are gone */
		if ((op & 7) >= 6)
			reader_fail(&x->r);
		else if ((op & 7) == 4)
			reader_skip(&x->r, 1);
		else
			x86_imm(x);
	} else if (op >= 0x70 && op <= 0x7f) {
		x86_branch(x, 1);
	} else if (op >= 0xe0 && op <= 0xe3) { /* loop, jrcxz */
		x86_branch(x, 1);
	} else if (op == 0x68 || op == 0xa9) {
		x86_imm(x);
	} else if (op == 0x6a || op == 0xa8 || (op >= 0xb0 && op <= 0xb7) || op == 0xcd || (op >= 0xe4 && op <= 0xe7)) {
		reader_skip(&x->r, 1);
	} else if (op >= 0xb8 && op <= 0xbf) {
		reader_skip(&x->r, x->is_rex_w ? 8 : x->is_16 ? 2 : 4);
	} else if (op >= 0xa0 && op <= 0xa3) {
		reader_skip(&x->r, x->is_32_address ? 4 : 8);
	} else if (op == 0xe8) {
		reader_skip(&x->r, 4);
	} else if (op == 0xe9 || op == 0xeb) { /* where it goes may be another function */
		reader_skip(&x->r, op == 0xe9 ? 4 : 1);
		x->insn.is_end = true;
	} else if (op == 0xc3 || op == 0xcb || op == 0xcf || op == 0xf4 || op == 0xcc) {
		x->insn.is_end = true;
	} else if (op == 0xc2 || op == 0xca) {
		reader_skip(&x->r, 2);
		x->insn.is_end = true;
	} else if (op == 0xc8) {
		reader_skip(&x->r, 3);
	} else if (op == 0x60 || op == 0x61 || op == 0x82 || op == 0x9a || op == 0xce || (op >= 0xd4 && op <= 0xd6) || op == 0xea) {
		reader_fail(&x->r);
	} else {
		return (op >= 0x50 && op <= 0x5f) || (op >= 0x6c && op <= 0x6f) || (op >= 0x90 && op <= 0x9f) || (op >= 0xa4 && op <= 0xaf) ||
		       op == 0xc9 || op == 0xd7 || (op >= 0xec && op <= 0xef) || op == 0xf1 || op == 0xf5 || (op >= 0xf8 && op <= 0xfd);
	}
	return true;
}

static void x86_one_byte(struct x86 *x, uint8_t op)
{
	if (x86_without_modrm(x, op))
		return;
	x86_modrm(x);
	if (op == 0x6b || op == 0x80 || op == 0x83 || op == 0xc0 || op == 0xc1 || op == 0xc6 || (op == 0xf6 && x->reg < 2))
		reader_skip(&x->r, 1);
	else if (op == 0x69 || op == 0x81 || op == 0xc7 || (op == 0xf7 && x->reg < 2))
		x86_imm(x);
	x->insn.is_end = op == 0xff && (x->reg == 4 || x->reg == 5); /* a jump to where a register says */
}

static uint8_t x86_prefixes(struct x86 *x)
{
	for (;;) {
		uint8_t byte = reader_u8(&x->r);

		if (byte == 0x66)
			x->is_16 = true;
		else if (byte == 0x67)
			x->is_32_address = true;
		else if (byte != 0xf2 && byte != 0xf3 && byte != 0xf0 && byte != 0x2e && byte != 0x36 && byte != 0x3e && byte != 0x26 &&
			 byte != 0x64 && byte != 0x65)
			return byte;
	}
}

static struct insn x86_insn(const uint8_t *code, size_t size)
{
	struct x86 x = { .r = reader_of(code, size) };
	uint8_t op = x86_prefixes(&x);

	if (op >= 0x40 && op <= 0x4f) {
		x.is_rex_w = op & 8;
		op = reader_u8(&x.r);
	}
	if (op == 0x0f) {
		x86_escape(&x);
	} else if (op == 0xc5) {
		reader_skip(&x.r, 1);
		x86_in_map(&x, 1, true);
	} else if (op == 0xc4) {
		uint8_t map = reader_u8(&x.r) & 0x1f;

		reader_skip(&x.r, 1);
		x86_in_map(&x, map, true);
	} else if (op == 0x62) {
		uint8_t map = reader_u8(&x.r) & 7;

		reader_skip(&x.r, 2);
		x86_in_map(&x, map, true);
	} else {
		x86_one_byte(&x, op);
	}
	x.insn.size = x.r.bad ? 0 : (size_t)(x.r.pos - code);
	return x.insn;
}

static int64_t signed_field(uint32_t word, unsigned int at, unsigned int nr_bits)
{
	uint32_t top = word << (32 - at - nr_bits);

	return (int64_t)((int32_t)top >> (32 - nr_bits)) * 4;
}

static struct insn arm64_insn(const uint8_t *code, size_t size)
{
	struct reader r = reader_of(code, size);
	uint32_t word = reader_u32(&r);
	struct insn insn = { .size = r.bad || word <= UINT16_MAX ? 0 : sizeof(word) }; /* udf */

	if ((word & 0x7c000000) == 0x14000000) /* b, bl */
		insn.is_end = !(word >> 31);
	else if ((word & 0xfe000000) == 0xd6000000) /* br, blr, ret, eret */
		insn.is_end = (word >> 21 & 15) != 1 && (word >> 21 & 15) != 9;
	else if ((word & 0xffe0001f) == 0xd4200000) /* brk */
		insn.is_end = true;
	else if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000) /* b.cond, cbz, cbnz */
		insn = (struct insn){ .size = 4, .is_branch = true, .target = signed_field(word, 5, 19) - 4 };
	else if ((word & 0x7e000000) == 0x36000000) /* tbz, tbnz */
		insn = (struct insn){ .size = 4, .is_branch = true, .target = signed_field(word, 5, 14) - 4 };
	return insn;
}

size_t code_end_find(uint16_t machine, const uint8_t *code, size_t size)
{
	size_t at = 0, farthest = 0; /* start of an instruction that a branch leads to */

	if (machine != EM_X86_64 && machine != EM_AARCH64)
		return 0;
	while (at < size) {
		struct insn insn = machine == EM_X86_64 ? x86_insn(code + at, size - at) : arm64_insn(code + at, size - at);

		if (!insn.size)
			break;
		at += insn.size;
		if (insn.is_branch && insn.target > 0 && (uint64_t)insn.target < size - at && at + (size_t)insn.target > farthest)
			farthest = at + (size_t)insn.target;
		if (insn.is_end && farthest < at)
			break;
	}
	return at;
}
