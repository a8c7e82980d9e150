/* SPDX-License-Identifier: Apache-2.0 */
/* x86_code: decodes one x86-64 instruction of any kind: its opcode, its operands, its length. Instruction formats: Intel SDM volume 2,
 * chapter 2 and appendix A. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum {
	X86_CODE_AX,
	X86_CODE_CX,
	X86_CODE_DX,
	X86_CODE_BX,
	X86_CODE_SP,
	X86_CODE_BP,
	X86_CODE_SI,
	X86_CODE_DI
}; /* register numbers as in instructions */

struct x86_code {
	uint32_t op; /* with its map: 0x100, 0x200, 0x300 and up for 0f, 0f 38, 0f 3a, and for the same maps of VEX and EVEX */
	uint8_t size;
	uint8_t modrm, sib, rex;
	uint8_t vvvv;     /* of VEX and EVEX: the other register */
	bool has_modrm, has_rex, is_vector, is_16, is_32_address, is_rep; /* is_rep: f3 */
	int32_t disp;
	int64_t imm;      /* for jumps: relative to the instruction's end */
};

/* False: not a valid instruction in 64-bit code, or it does not end within the bytes. */
MUST_CHECK bool x86_code_read(const uint8_t *code, size_t size, struct x86_code *ret_code);

static inline bool x86_code_is_register(const struct x86_code *code) /* is the operand that can be memory a register? */
{
	return code->has_modrm && code->modrm >= 0xc0;
}

static inline uint8_t x86_code_reg(const struct x86_code *code)
{
	return (uint8_t)((code->modrm >> 3 & 7) | (code->rex & 4) << 1);
}

static inline uint8_t x86_code_rm(const struct x86_code *code)
{
	return (uint8_t)((code->modrm & 7) | (code->rex & 1) << 3);
}

static inline uint8_t x86_code_extension(const struct x86_code *code) /* for opcodes that a ModRM byte extends */
{
	return code->modrm >> 3 & 7;
}

bool x86_code_is_branch(const struct x86_code *code); /* a conditional jump, by imm */
bool x86_code_is_end(const struct x86_code *code);    /* control does not reach the next one */
