// SPDX-License-Identifier: Apache-2.0
/* php_loops: finds the code of execute_ex. Compilers move rarely executed code out of a function. That part has an FDE of its own but, in a
 * stripped file, no symbol: it is found by the jumps into it. The code is not decoded: all bytes that look like a jump are counted.
 * Accidental ones lead anywhere, those of execute_ex lead to one part by dozens. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>

#include "base/reader.h"
#include "elf/dynamic_symbol.h"
#include "runtime/fde_index.h"
#include "runtime/php/php_private.h"

#define MAX_LOOP_BYTES ((uint64_t)4 << 20)
#define MIN_JUMPS 8 /* number of jumps into an FDE */

/* Decodes a direct jump; *ret_target 0: there is none. Returns the distance to the next possible position of a jump. */
static size_t jump_at(uint16_t machine, const uint8_t *code, size_t left, uint64_t pc, uint64_t *ret_target)
{
	struct reader r = reader_of(code, left);
	uint32_t word;

	*ret_target = 0;
	if (machine == EM_AARCH64) { /* B, B.cond, CBZ, CBNZ */
		word = reader_u32(&r);
		if ((word & 0xfc000000) == 0x14000000)
			*ret_target = pc + (uint64_t)((int64_t)(int32_t)(word << 6) >> 4);
		else if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000)
			*ret_target = pc + ((uint64_t)((int64_t)(int32_t)(word << 8) >> 11) & ~3ULL);
		return 4;
	}
	word = reader_u8(&r);
	if (word == 0x0f && (reader_u8(&r) & 0xf0) == 0x80) /* Jcc rel32 */
		*ret_target = pc + 6;
	else if (word == 0xe9) /* JMP rel32 */
		*ret_target = pc + 5;
	if (*ret_target)
		*ret_target += (uint64_t)(int64_t)(int32_t)reader_u32(&r);
	if (r.bad)
		*ret_target = 0;
	return 1;
}

/* Counts, for each FDE, the jumps in the code that lead into its middle. The caller frees the counts. */
static int count_jumps(const struct elf_file *elf, const struct fde_index *index, const struct sonde_code_range *loop,
		       uint32_t **ret_counts)
{
	size_t size = (size_t)(loop->end_pc - loop->start_pc);
	CLEANUP(freep) uint32_t *counts = calloc(index->nr, sizeof(*counts));
	CLEANUP(freep) uint8_t *code = malloc(size);
	uint64_t target;

	if (!counts || !code)
		return -ENOMEM;
	if (elf_file_read_vaddr(elf, loop->start_pc, code, size))
		return -ENOENT;
	for (size_t i = 0; i < size;) {
		uint64_t pc = loop->start_pc + i, end;
		uint32_t fde;

		i += jump_at(elf_file_machine(elf), code + i, size - i, pc, &target);
		if (!target || target - loop->start_pc < size)
			continue;
		fde = fde_index_find(index, target);
		if (fde < index->nr && fde_index_pc(index, fde) != target && !fde_index_end(elf, index, fde, &end) && target < end)
			counts[fde]++;
	}
	*ret_counts = MOVE(counts);
	return 0;
}

static int find_parts(const struct elf_file *elf, struct sonde_code_range loops[SONDE_MAX_LOOPS])
{
	CLEANUP(fde_index_done) struct fde_index index = { 0 };
	CLEANUP(freep) uint32_t *counts = NULL;
	int nr = 1, err;

	err = fde_index_read(elf, &index);
	if (err)
		return err == -ENOMEM ? err : nr;
	err = count_jumps(elf, &index, &loops[0], &counts);
	if (err)
		return err == -ENOMEM ? err : nr;
	for (uint32_t i = 0; i < index.nr && nr < SONDE_MAX_LOOPS; i++) {
		uint64_t end;

		if (counts[i] < MIN_JUMPS || fde_index_end(elf, &index, i, &end))
			continue;
		loops[nr++] = (struct sonde_code_range){ .start_pc = fde_index_pc(&index, i), .end_pc = end };
	}
	return nr;
}

int php_loops_find(const struct elf_file *elf, struct sonde_code_range ret_loops[SONDE_MAX_LOOPS])
{
	struct dynamic_symbol function;
	int nr;

	if (dynamic_symbol_find(elf, "execute_ex", &function) || !function.size_bytes || function.size_bytes > MAX_LOOP_BYTES)
		return -ENOENT;
	ret_loops[0] = (struct sonde_code_range){ .start_pc = function.elf_vaddr, .end_pc = function.elf_vaddr + function.size_bytes };
	nr = find_parts(elf, ret_loops);
	return nr;
}
