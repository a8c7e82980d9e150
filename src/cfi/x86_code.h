/* SPDX-License-Identifier: Apache-2.0 */
/* x86_code: takes apart one instruction of x86-64, whichever: its opcode, its operands, where it ends. Instruction formats: Intel SDM
 * volume 2, chapter 2 and appendix A. */
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
}; /* as instructions number them */

struct x86_code {
	uint32_t
	    op; /* with the map that it is in: 0x100, 0x200, 0x300 and up behind 0f, 0f 38, 0f 3a, and what VEX and EVEX have for them */
	uint8_t size;
	uint8_t modrm, sib, rex;
	uint8_t vvvv;     /* of VEX and EVEX: the other register */
	bool has_modrm, has_rex, is_vector, is_16, is_32_address, is_rep; /* is_rep: f3 */
	int32_t disp;
	int64_t imm;      /* of jumps: from the instruction's end */
};

/* False: not an instruction that there is in 64-bit code, or it does not end in the bytes. */
MUST_CHECK bool x86_code_read(const uint8_t *code, size_t size, struct x86_code *ret_code);

static inline bool x86_code_is_register(const struct x86_code *code) /* the operand that could be memory */
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

static inline uint8_t x86_code_extension(const struct x86_code *code) /* of opcodes that a ModRM byte goes on */
{
	return code->modrm >> 3 & 7;
}

bool x86_code_is_branch(const struct x86_code *code); /* a conditional jump, by imm */
bool x86_code_is_end(const struct x86_code *code);    /* control does not come to the next one */
