// SPDX-License-Identifier: Apache-2.0
#include "cfi/code_end.h"

#include <elf.h>
#include <stdbool.h>

#include "base/reader.h"
#include "cfi/x86_code.h"

struct insn {
	size_t size;	/* 0: not known */
	bool is_end;	/* control does not reach the next one */
	bool is_branch; /* it may also continue at `target` */
	int64_t target; /* relative to the instruction's end */
};

static struct insn x86_insn(const uint8_t *code, size_t size)
{
	struct x86_code x86;

	if (!x86_code_read(code, size, &x86))
		return (struct insn){ 0 };
	return (struct insn){ .size = x86.size, .is_end = x86_code_is_end(&x86), .is_branch = x86_code_is_branch(&x86), .target = x86.imm };
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
