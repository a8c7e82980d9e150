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
#define JMP 0xe9
#define MAX_EVAL_BYTES 1024
#define CALL_BYTES 5

/* The code that a direct call or jump leads to, if a function begins there. False: none. */
static bool target_of(const struct elf_file *elf, const struct fde_index *index, const uint8_t *code, uint64_t pc,
		      struct sonde_code_range *ret_function)
{
	uint64_t target = pc + CALL_BYTES + (uint64_t)(int64_t)(int32_t)u32_at(code, 1), end;
	uint32_t fde = code[0] == CALL || code[0] == JMP ? fde_index_find(index, target) : index->nr;

	if (fde == index->nr || fde_index_pc(index, fde) != target || fde_index_end(elf, index, fde, &end) || end - target > MAX_LOOP_BYTES)
		return false;
	*ret_function = (struct sonde_code_range){ target, end };
	return true;
}

static uint64_t bytes_of(const struct sonde_code_range *function)
{
	return function->end_pc - function->start_pc;
}

/* The largest function that this one calls, if it is large enough. *ret_core both 0: there is none. 0, -ENOENT or -ENOMEM. */
static int find_core(const struct elf_file *elf, const struct fde_index *index, const struct sonde_code_range *exec,
		     struct sonde_code_range *ret_core)
{
	size_t size = (size_t)bytes_of(exec);
	CLEANUP(freep) uint8_t *code = malloc(size);
	struct sonde_code_range called;

	*ret_core = (struct sonde_code_range){ 0 };
	if (!code)
		return -ENOMEM;
	if (elf_file_read_vaddr(elf, exec->start_pc, code, size))
		return -ENOENT;
	for (size_t i = 0; i + CALL_BYTES <= size; i++) {
		if (target_of(elf, index, code + i, exec->start_pc + i, &called) && called.start_pc != exec->start_pc &&
		    bytes_of(&called) >= MIN_CORE_BYTES && bytes_of(&called) > bytes_of(ret_core))
			*ret_core = called;
	}
	return 0;
}

/* Where rb_vm_exec is hidden: rb_iseq_eval calls it, or ends in it. It is the one among those that calls the loop, or contains it. */
static int find_hidden(const struct elf_file *elf, const struct fde_index *index, struct sonde_code_range *ret_exec)
{
	struct sonde_code_range function, core;
	uint8_t code[MAX_EVAL_BYTES];
	struct dynamic_symbol eval;
	size_t size;

	if (dynamic_symbol_find(elf, "rb_iseq_eval", &eval))
		return -ENOENT;
	size = eval.size_bytes < sizeof(code) ? (size_t)eval.size_bytes : sizeof(code);
	if (elf_file_read_vaddr(elf, eval.elf_vaddr, code, size))
		return -ENOENT;
	for (size_t i = 0; i + CALL_BYTES <= size; i++) {
		int err;

		if (!target_of(elf, index, code + i, eval.elf_vaddr + i, &function))
			continue;
		err = find_core(elf, index, &function, &core);
		if (err == -ENOMEM)
			return err;
		if (err || (!core.end_pc && bytes_of(&function) < MIN_CORE_BYTES))
			continue;
		*ret_exec = function;
		return 0;
	}
	return -ENOENT;
}

int ruby_loops_find(const struct elf_file *elf, struct sonde_code_range *ret_exec, struct sonde_code_range *ret_core)
{
	CLEANUP(fde_index_done) struct fde_index index = { 0 };
	struct dynamic_symbol symbol;
	int err = fde_index_read(elf, &index);

	if (err)
		return err;
	if (dynamic_symbol_find(elf, "rb_vm_exec", &symbol))
		err = find_hidden(elf, &index, ret_exec);
	else if (!symbol.size_bytes || symbol.size_bytes > MAX_LOOP_BYTES || symbol.elf_vaddr > UINT64_MAX - symbol.size_bytes)
		err = -ENOENT;
	else
		*ret_exec = (struct sonde_code_range){ symbol.elf_vaddr, symbol.elf_vaddr + symbol.size_bytes };
	return err ? err : find_core(elf, &index, ret_exec, ret_core);
}
