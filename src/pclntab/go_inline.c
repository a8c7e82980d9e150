// SPDX-License-Identifier: Apache-2.0
/* Lines and inlined calls. The inline tree's entry for an address has the function that was inlined there, and an address in its caller.
 * That address has an entry of its own, or none: then the caller is the function that the code belongs to (Go's
 * src/runtime/symtabinl.go). */
#include <errno.h>
#include <string.h>

#include "pclntab/go_pclntab_private.h"

#define MAX_DEPTH 256 /* nested inlined calls; more means a cycle */

struct inlined_call {
	uint32_t name, start_line;
	uint64_t parent_vaddr; /* address of the call in its caller */
};

/* Reads runtime.inlinedCall: 16 bytes since 1.20; before that 20, without the first line. */
static bool read_call(const struct go_pclntab *table, const struct go_function *function, uint32_t index, struct inlined_call *ret_call)
{
	bool is_new = table->layout == GO_LAYOUT_120;
	uint32_t words[5], entry_bytes = is_new ? 16 : 20;
	uint64_t file_off, size, vaddr = table->go_func_vaddr + function->inline_tree + (uint64_t)index * entry_bytes;

	if (go_file_off(table->elf, vaddr, &file_off, &size) || size < entry_bytes ||
	    elf_file_read_at(table->elf, file_off, words, entry_bytes))
		return false;
	ret_call->name = words[is_new ? 1 : 3];
	ret_call->start_line = is_new ? words[3] : 0;
	ret_call->parent_vaddr = function->start_vaddr + words[is_new ? 2 : 4];
	return true;
}

/* Returns the file of an address: the units' table leads from the file's number in the compilation unit to its name. */
static const char *file_at(const struct go_pclntab *table, const struct go_function *function, uint64_t elf_vaddr)
{
	int32_t number = go_pcvalue_at(table, function, function->pcfile, elf_vaddr, -1);
	struct reader r;
	uint32_t off;

	if (number < 0)
		return "";
	r = go_reader_at(table, table->units, ((uint64_t)function->unit + (uint32_t)number) * 4);
	off = reader_u32(&r);
	return r.bad || off == UINT32_MAX ? "" : go_text(table, table->files, off);
}

static struct go_frame frame_at(const struct go_pclntab *table, const struct go_function *function, uint64_t elf_vaddr)
{
	int32_t line = go_pcvalue_at(table, function, function->pcln, elf_vaddr, 0);

	return (struct go_frame){
		.name = function->name,
		.file = file_at(table, function, elf_vaddr),
		.line = line > 0 ? (uint32_t)line : 0,
		.start_line = function->start_line,
		.start_vaddr = function->start_vaddr,
	};
}

int go_pclntab_frames(const struct go_pclntab *table, uint64_t elf_vaddr, struct go_frame *frames, uint32_t max_frames, uint32_t *ret_nr)
{
	bool has_tree = table->go_func_vaddr;
	struct go_function function;
	uint32_t nr = 0, depth = 0;

	if (!max_frames || go_pclntab_find(table, elf_vaddr, &function) || !function.name[0])
		return -ENOENT;
	if (function.inline_tree == UINT32_MAX || !function.inline_index)
		has_tree = false;
	for (; has_tree && depth < MAX_DEPTH; depth++) {
		int32_t index = go_pcvalue_at(table, &function, function.inline_index, elf_vaddr, -1);
		struct inlined_call call;
		const char *name;

		if (index < 0 || !read_call(table, &function, (uint32_t)index, &call))
			break;
		name = go_text(table, table->names, call.name);
		if (!name[0] || call.parent_vaddr >= function.end_vaddr)
			break;
		if (nr + 1 < max_frames) {
			frames[nr] = frame_at(table, &function, elf_vaddr);
			frames[nr].name = name;
			frames[nr++].start_line = call.start_line;
		}
		elf_vaddr = call.parent_vaddr;
	}
	if (depth == MAX_DEPTH)
		nr = 0;
	frames[nr++] = frame_at(table, &function, elf_vaddr);
	*ret_nr = nr;
	return 0;
}

/* To the range of one of the function's tables that has the address; without one, to the address alone. */
static void narrow_to_range(const struct go_pclntab *table, const struct go_function *function, uint32_t table_off, uint64_t elf_vaddr,
			    uint64_t *start, uint64_t *end)
{
	struct go_pcvalue values = go_pcvalue_of(table, function, table_off);
	uint64_t from = elf_vaddr, to = elf_vaddr + 1, range;

	if (!table_off)
		return;
	while (go_pcvalue_next(&values, &range)) {
		if (elf_vaddr >= values.vaddr)
			continue;
		from = range;
		to = values.vaddr;
		break;
	}
	*start = from > *start ? from : *start;
	*end = to < *end ? to : *end;
}

bool go_pclntab_extent(const struct go_pclntab *table, uint64_t elf_vaddr, uint64_t *ret_start, uint64_t *ret_end)
{
	struct go_function function;

	if (go_pclntab_find(table, elf_vaddr, &function) || !function.name[0])
		return false;
	*ret_start = elf_vaddr;
	*ret_end = elf_vaddr + 1;
	/* the last byte may be the next function's (go_pclntab_find) */
	if (elf_vaddr < function.start_vaddr || *ret_end >= function.end_vaddr)
		return true;
	*ret_start = function.start_vaddr;
	*ret_end = function.end_vaddr - 1;
	narrow_to_range(table, &function, function.pcln, elf_vaddr, ret_start, ret_end);
	narrow_to_range(table, &function, function.pcfile, elf_vaddr, ret_start, ret_end);
	narrow_to_range(table, &function, function.inline_index, elf_vaddr, ret_start, ret_end);
	return true;
}
