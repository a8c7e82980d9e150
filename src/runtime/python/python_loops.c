// SPDX-License-Identifier: Apache-2.0
/* python_loops: the hot part is what the exported symbol covers. A cold part is found without a symbol: it is code with its own call frame
 * information whose jumps lead into the middle of the hot part, where no other function can go. Bytes are examined at every offset, so one
 * or two numbers in instructions may look like such a jump: more are required. */
#include "runtime/python/python_loops.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfi/cfi.h"
#include "elf/dynamic_symbol.h"

#define MAX_PART_BYTES ((uint64_t)256 << 10)
#define MIN_JUMPS 4

struct search {
	const struct elf_file *elf;
	struct sonde_code_range *loops;
	uint32_t nr;
	uint64_t start_vaddr; /* start of the FDE; 0: not begun */
	uint8_t *code;        /* has MAX_PART_BYTES */
};

static bool is_in_midst(const struct sonde_code_range *range, uint64_t pc)
{
	return pc > range->start_pc && pc < range->end_pc;
}

static bool jumps_x86(const uint8_t *code, size_t left, uint64_t vaddr, const struct sonde_code_range *hot)
{
	size_t opcode = code[0] == 0xe9 ? 1 : code[0] == 0x0f && left > 1 && (code[1] & 0xf0) == 0x80 ? 2 : 0; /* jmp rel32, jcc rel32 */
	int32_t rel;

	if (!opcode || left < opcode + sizeof(rel))
		return false;
	memcpy(&rel, code + opcode, sizeof(rel));
	return is_in_midst(hot, vaddr + opcode + sizeof(rel) + (uint64_t)(int64_t)rel);
}

static bool jumps_arm64(const uint8_t *code, size_t left, uint64_t vaddr, const struct sonde_code_range *hot)
{
	uint32_t word;
	int64_t words = 0;

	if (vaddr % 4 || left < sizeof(word))
		return false;
	memcpy(&word, code, sizeof(word));
	if (word >> 26 == 5)                        /* b */
		words = (int32_t)(word << 6) >> 6;
	else if (word >> 24 == 0x54 || (word >> 25 & 0x3f) == 0x1a) /* b.cond, cbz, cbnz */
		words = (int32_t)(word << 8) >> 13;
	return words && is_in_midst(hot, vaddr + (uint64_t)(words * 4));
}

static uint32_t count_jumps(const struct search *s, uint64_t vaddr, size_t size)
{
	bool is_arm64 = elf_file_machine(s->elf) == EM_AARCH64;
	uint32_t nr = 0;

	for (size_t i = 0; i < size; i++)
		nr += is_arm64 ? jumps_arm64(s->code + i, size - i, vaddr + i, s->loops)
			       : jumps_x86(s->code + i, size - i, vaddr + i, s->loops);
	return nr;
}

static int take_row(void *arg, uint64_t vaddr, const struct sonde_rule *rule)
{
	struct search *s = arg;
	uint64_t start = s->start_vaddr, size;

	if (rule) {
		if (!start)
			s->start_vaddr = vaddr;
		return 0;
	}
	s->start_vaddr = 0;
	size = vaddr - start;
	if (!start || vaddr <= start || size > MAX_PART_BYTES || s->nr == SONDE_MAX_LOOPS ||
	    (start < s->loops->end_pc && vaddr > s->loops->start_pc))
		return 0;
	if (elf_file_read_vaddr(s->elf, start, s->code, (size_t)size) || count_jumps(s, start, (size_t)size) < MIN_JUMPS)
		return 0;
	s->loops[s->nr++] = (struct sonde_code_range){ start, vaddr };
	return 0;
}

int python_loops_find(const struct elf_file *elf, struct sonde_code_range loops[SONDE_MAX_LOOPS])
{
	CLEANUP(freep) uint8_t *code = malloc(MAX_PART_BYTES);
	CLEANUP(cfi_section_done) struct cfi_section section = { .bytes = NULL };
	struct search s = { .elf = elf, .loops = loops, .nr = 1, .code = code };
	struct cfi_stats stats;
	int err;

	if (!code)
		return -ENOMEM;
	err = cfi_section_read(elf, CFI_EH_FRAME, NULL, &section);
	if (!err)
		err = cfi_walk(&section, take_row, &s, &stats, NULL);
	return err == -ENOMEM ? err : (int)s.nr;
}
