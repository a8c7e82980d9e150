// SPDX-License-Identifier: Apache-2.0
/* vm_exec_core, the loop of the interpreter (vm_exec.c), has no exported name. rb_vm_exec (vm.c) is its only caller, and it is by far the
 * largest function that rb_vm_exec calls: 17 KB, the next one has 1. The code is not decoded: all bytes that look like a call of a
 * function's first instruction count. */
#include <errno.h>
#include <string.h>

#include <elf.h>

#include "elf/dynamic_symbol.h"
#include "runtime/fde_index.h"
#include "runtime/ruby/ruby_private.h"
#include "runtime/words.h"

#define MAX_LOOP_BYTES ((uint64_t)1 << 20)
#define MIN_CORE_BYTES 8192
#define CALL 0xe8 /* with an offset of four bytes */
#define CALL_BYTES 5

static int find_core(const struct elf_file *elf, const struct fde_index *index, const struct sonde_code_range *exec,
		     struct sonde_code_range *ret_core)
{
	size_t size = (size_t)(exec->end_pc - exec->start_pc);
	CLEANUP(freep) uint8_t *code = malloc(size);

	if (!code)
		return -ENOMEM;
	if (elf_file_read_vaddr(elf, exec->start_pc, code, size))
		return -ENOENT;
	for (size_t i = 0; i + CALL_BYTES <= size; i++) {
		uint64_t target = exec->start_pc + i + CALL_BYTES + (uint64_t)(int64_t)(int32_t)u32_at(code, i + 1), end;
		uint32_t fde = code[i] == CALL ? fde_index_find(index, target) : index->nr;

		if (fde == index->nr || fde_index_pc(index, fde) != target || fde_index_end(elf, index, fde, &end))
			continue;
		if (end - target >= MIN_CORE_BYTES && end - target <= MAX_LOOP_BYTES &&
		    end - target > ret_core->end_pc - ret_core->start_pc)
			*ret_core = (struct sonde_code_range){ target, end };
	}
	return 0;
}

int ruby_loops_find(const struct elf_file *elf, struct sonde_code_range *ret_exec, struct sonde_code_range *ret_core)
{
	CLEANUP(fde_index_done) struct fde_index index = { 0 };
	struct dynamic_symbol symbol;
	int err;

	if (dynamic_symbol_find(elf, "rb_vm_exec", &symbol) || symbol.type != STT_FUNC || !symbol.size_bytes ||
	    symbol.size_bytes > MAX_LOOP_BYTES || symbol.elf_vaddr > UINT64_MAX - symbol.size_bytes)
		return -ENOENT;
	*ret_exec = (struct sonde_code_range){ symbol.elf_vaddr, symbol.elf_vaddr + symbol.size_bytes };
	*ret_core = (struct sonde_code_range){ 0 };
	err = fde_index_read(elf, &index);
	return err ? err : find_core(elf, &index, ret_exec, ret_core);
}
