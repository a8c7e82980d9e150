// SPDX-License-Identifier: Apache-2.0
#include "cfi/x86_code.h"

#include "base/reader.h"

struct x86 {
	struct reader r;
	struct x86_code code;
};

static void read_modrm(struct x86 *x)
{
	uint8_t mod, rm;

	x->code.has_modrm = true;
	x->code.modrm = reader_u8(&x->r);
	mod = x->code.modrm >> 6;
	rm = x->code.modrm & 7;
	if (mod == 3)
		return;
	if (rm == 4)
		x->code.sib = reader_u8(&x->r);
	if (mod == 1)
		x->code.disp = (int8_t)reader_u8(&x->r);
	else if (mod == 2 || (mod == 0 && (rm == 5 || (rm == 4 && (x->code.sib & 7) == 5))))
		x->code.disp = (int32_t)reader_u32(&x->r);
}

static void read_imm8(struct x86 *x)
{
	x->code.imm = (int8_t)reader_u8(&x->r);
}

static void read_imm32(struct x86 *x)
{
	x->code.imm = (int32_t)reader_u32(&x->r);
}

static void read_imm(struct x86 *x) /* as wide as the operand, at most four bytes */
{
	if (x->code.is_16 && !(x->code.rex & 8))
		x->code.imm = (int16_t)reader_u16(&x->r);
	else
		read_imm32(x);
}

/* The map after 0f. */
static void read_two_bytes(struct x86 *x, uint8_t op)
{
	if (op == 0x77)
		return;
	if (!x->code.is_vector) {
		if (op >= 0x80 && op <= 0x8f) {
			read_imm32(x);
			return;
		}
		if ((op >= 0x05 && op <= 0x0b) || op == 0x0e || (op >= 0x30 && op <= 0x37) || (op >= 0xa0 && op <= 0xa2) ||
		    (op >= 0xa8 && op <= 0xaa) || (op >= 0xc8 && op <= 0xcf))
			return;
	}
	read_modrm(x);
	if ((op >= 0x70 && op <= 0x73) || op == 0xc2 || (op >= 0xc4 && op <= 0xc6) ||
	    (!x->code.is_vector && (op == 0xa4 || op == 0xac || op == 0xba)))
		read_imm8(x);
}

static void read_in_map(struct x86 *x, uint8_t map)
{
	uint8_t op = reader_u8(&x->r);

	x->code.op = (uint32_t)map << 8 | op;
	if (map == 1) {
		read_two_bytes(x, op);
	} else if (map == 2 || map == 3) {
		read_modrm(x);
		if (map == 3)
			read_imm8(x);
	} else {
		reader_fail(&x->r);
	}
}

static void read_escape(struct x86 *x)
{
	uint8_t op = x->r.pos < x->r.end ? *x->r.pos : 0;

	if (op == 0x38 || op == 0x3a)
		reader_skip(&x->r, 1);
	read_in_map(x, op == 0x38 ? 2 : op == 0x3a ? 3 : 1);
}

/* VEX and EVEX prefixes; their register bits are inverted. */
static void read_vector(struct x86 *x, uint8_t prefix)
{
	uint8_t first = reader_u8(&x->r), second = prefix == 0xc5 ? first : reader_u8(&x->r);

	x->code.is_vector = true;
	x->code.rex = (uint8_t)((~first >> 5 & 4) | (prefix == 0xc5 ? 0 : (~first >> 5 & 1) | (~first >> 5 & 2) | (second >> 4 & 8)));
	x->code.vvvv = ~second >> 3 & 15;
	x->code.is_rep = (second & 3) == 2;
	if (prefix == 0x62)
		reader_skip(&x->r, 1);
	read_in_map(x, prefix == 0xc5 ? 1 : prefix == 0xc4 ? first & 0x1f : first & 7);
}

/* Opcodes without a ModRM byte. False: it has one. */
static bool read_without_modrm(struct x86 *x, uint8_t op)
{
	if (op < 0x40 && (op & 7) >= 4) { /* add $imm, %al and the like; those of segment registers do not exist in 64-bit code */
		if ((op & 7) >= 6)
			reader_fail(&x->r);
		else if ((op & 7) == 4)
			read_imm8(x);
		else
			read_imm(x);
	} else if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3) || op == 0xeb || op == 0x6a || op == 0xa8 ||
		   (op >= 0xb0 && op <= 0xb7) || op == 0xcd || (op >= 0xe4 && op <= 0xe7)) {
		read_imm8(x);
	} else if (op == 0x68 || op == 0xa9) {
		read_imm(x);
	} else if (op >= 0xb8 && op <= 0xbf) {
		if (x->code.rex & 8)
			x->code.imm = (int64_t)reader_u64(&x->r);
		else
			read_imm(x);
	} else if (op >= 0xa0 && op <= 0xa3) {
		reader_skip(&x->r, x->code.is_32_address ? 4 : 8);
	} else if (op == 0xe8 || op == 0xe9) {
		read_imm32(x);
	} else if (op == 0xc2 || op == 0xca) {
		x->code.imm = reader_u16(&x->r);
	} else if (op == 0xc8) {
		reader_skip(&x->r, 3);
	} else if (op == 0x60 || op == 0x61 || op == 0x82 || op == 0x9a || op == 0xce || (op >= 0xd4 && op <= 0xd6) || op == 0xea) {
		reader_fail(&x->r);
	} else {
		return (op >= 0x50 && op <= 0x5f) || (op >= 0x6c && op <= 0x6f) || (op >= 0x90 && op <= 0x9f) ||
		       (op >= 0xa4 && op <= 0xaf) || op == 0xc3 || op == 0xc9 || op == 0xcb || op == 0xcc || op == 0xcf || op == 0xd7 ||
		       (op >= 0xec && op <= 0xef) || op == 0xf1 || op == 0xf4 || op == 0xf5 || (op >= 0xf8 && op <= 0xfd);
	}
	return true;
}

static void read_one_byte(struct x86 *x, uint8_t op)
{
	x->code.op = op;
	if (read_without_modrm(x, op))
		return;
	read_modrm(x);
	if (op == 0x6b || op == 0x80 || op == 0x83 || op == 0xc0 || op == 0xc1 || op == 0xc6 ||
	    (op == 0xf6 && x86_code_extension(&x->code) < 2))
		read_imm8(x);
	else if (op == 0x69 || op == 0x81 || op == 0xc7 || (op == 0xf7 && x86_code_extension(&x->code) < 2))
		read_imm(x);
}

static uint8_t read_prefixes(struct x86 *x)
{
	for (;;) {
		uint8_t byte = reader_u8(&x->r);

		if (byte == 0x66)
			x->code.is_16 = true;
		else if (byte == 0x67)
			x->code.is_32_address = true;
		else if (byte == 0xf3)
			x->code.is_rep = true;
		else if (byte != 0xf2 && byte != 0xf0 && byte != 0x2e && byte != 0x36 && byte != 0x3e && byte != 0x26 && byte != 0x64 &&
			 byte != 0x65)
			return byte;
	}
}

bool x86_code_read(const uint8_t *code, size_t size, struct x86_code *ret_code)
{
	struct x86 x = { .r = reader_of(code, size < 15 ? size : 15) };
	uint8_t op = read_prefixes(&x);

	if (op >= 0x40 && op <= 0x4f) {
		x.code.rex = op;
		x.code.has_rex = true;
		op = reader_u8(&x.r);
	}
	if (op == 0x0f)
		read_escape(&x);
	else if (op == 0xc5 || op == 0xc4 || op == 0x62)
		read_vector(&x, op);
	else
		read_one_byte(&x, op);
	if (x.r.bad)
		return false;
	x.code.size = (uint8_t)(x.r.pos - code);
	*ret_code = x.code;
	return true;
}

bool x86_code_is_branch(const struct x86_code *code)
{
	return (code->op >= 0x70 && code->op <= 0x7f) || (code->op >= 0xe0 && code->op <= 0xe3) ||
	       (code->op >= 0x180 && code->op <= 0x18f && !code->is_vector);
}

bool x86_code_is_end(const struct x86_code *code)
{
	uint32_t op = code->op;

	if (op == 0xff) /* an indirect jump */
		return x86_code_extension(code) == 4 || x86_code_extension(code) == 5;
	return op == 0xe9 || op == 0xeb || op == 0xc3 || op == 0xcb || op == 0xcf || op == 0xf4 || op == 0xcc || op == 0xc2 || op == 0xca ||
	       (op == 0x10b && !code->is_vector);
}
