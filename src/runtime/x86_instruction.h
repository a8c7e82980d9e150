/* SPDX-License-Identifier: Apache-2.0 */
/* x86_instruction: decodes the x86-64 integer instructions that occur in short functions (Intel SDM volume 2, chapter 2 and appendix A); no
 * vector instructions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define X86_MAX_BYTES 15
#define X86_NONE 0xff /* no register */
#define X86_RIP	 0xfe /* as a base: the address of the next instruction */

enum { X86_RAX, X86_RCX, X86_RDX, X86_RBX, X86_RSP, X86_RBP, X86_RSI, X86_RDI, X86_R8, X86_R9, X86_R10, X86_R11 };

struct elf_file;

struct x86_instruction {
	uint16_t opcode;	 /* 0x0fXX for two-byte opcodes */
	uint8_t size_bytes;
	uint8_t operand_bytes;	 /* 2, 4 or 8 by the prefixes; 1 for byte opcodes */
	uint8_t reg, rm;	 /* of the ModRM byte; rm is X86_NONE for a memory operand */
	uint8_t base, index, scale; /* of the memory operand: X86_NONE, or registers */
	bool has_modrm, is_fs, has_rex;
	int64_t displacement, immediate;
};

/* 0; -EOPNOTSUPP: unknown instruction; -EBADMSG: it does not end within the bytes. */
MUST_CHECK int x86_instruction_decode(const uint8_t *bytes, size_t size, struct x86_instruction *ret_instruction);
/* Decodes the instruction at *at, an address as linked, and moves *at behind it. 0; -ENOENT: no bytes there, or not decoded. */
MUST_CHECK int x86_instruction_next(const struct elf_file *elf, uint64_t *at, struct x86_instruction *ret_instruction);
