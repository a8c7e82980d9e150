// SPDX-License-Identifier: Apache-2.0
/* Reads the header and the functions. Entries are decoded in place on demand. Nothing is built; only the order of the entries is
 * checked. */
#include "pclntab/go_pclntab.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "pclntab/go_pclntab_private.h"

#define MAX_FUNCTIONS (16u << 20) /* the largest program seen has 400,000 */

/* internal/abi/symtab.go: PCLnTabMagic. */
#define MAGIC_116 0xfffffffau
#define MAGIC_118 0xfffffff0u
#define MAGIC_120 0xfffffff1u

#define INLINE_INDEX_PCDATA 2 /* PCDATA_InlTreeIndex, FUNCDATA_InlTree: 1.18 and later */
#define INLINE_TREE_FUNCDATA 3

void go_pclntab_free(struct go_pclntab *table)
{
	if (!table)
		return;
	free(table->bytes);
	free(table);
}

const char *go_text(const struct go_pclntab *table, size_t part, uint64_t off)
{
	struct reader r = go_reader_at(table, part, off);

	return reader_text(&r);
}

/* Reads runtime.pcHeader. Its textStart (1.18 to 1.25) may still lack its relocation, and is 0 from 1.26 on. */
static int read_header(struct go_pclntab *table, struct diag *diag)
{
	struct reader r = reader_of(table->bytes, table->size);
	uint32_t magic = reader_u32(&r);
	uint64_t nr_functions, parts[5];

	if (magic != MAGIC_116 && magic != MAGIC_118 && magic != MAGIC_120)
		return diag_errno(diag, ENODATA, "a .gopclntab of an unknown version: 0x%x", magic);
	table->layout = magic == MAGIC_116 ? GO_LAYOUT_116 : magic == MAGIC_118 ? GO_LAYOUT_118 : GO_LAYOUT_120;
	if (reader_u16(&r) || reader_u8(&r) != 1 || reader_u8(&r) != 8) /* padding; unit of instruction lengths; pointer size */
		return diag_errno(diag, EBADMSG, "damaged header of .gopclntab");
	nr_functions = reader_u64(&r);
	reader_skip(&r, 8); /* number of files */
	if (table->layout != GO_LAYOUT_116)
		reader_skip(&r, 8); /* textStart */
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		parts[i] = reader_u64(&r);
		if (parts[i] > table->size)
			reader_fail(&r);
	}
	if (r.bad || !nr_functions || nr_functions > MAX_FUNCTIONS)
		return diag_errno(diag, EBADMSG, "damaged header of .gopclntab");
	table->names = parts[0];
	table->units = parts[1];
	table->files = parts[2];
	table->values = parts[3];
	table->functions = parts[4];
	table->nr_functions = (uint32_t)nr_functions;
	return 0;
}

/* Reads entry i of the function index, i <= nr_functions. The last entry has no function, only the end of all. */
static void read_index(const struct go_pclntab *table, uint32_t i, uint64_t *ret_vaddr, uint64_t *ret_off)
{
	struct reader r;

	if (table->layout == GO_LAYOUT_116) {
		r = go_reader_at(table, table->functions, (uint64_t)i * 16);
		*ret_vaddr = reader_u64(&r);
		*ret_off = i < table->nr_functions ? reader_u64(&r) : 0;
		return;
	}
	r = go_reader_at(table, table->functions, (uint64_t)i * 8);
	*ret_vaddr = table->text_vaddr + reader_u32(&r);
	*ret_off = i < table->nr_functions ? reader_u32(&r) : 0;
}

/* The functions must be in order, and their code must be in the file: so all together are no longer than the file. */
static int check_index(const struct go_pclntab *table, struct diag *diag)
{
	uint64_t first, last, vaddr, off, size, file_off;
	uint64_t entry_size = table->layout == GO_LAYOUT_116 ? 16 : 8;

	if (entry_size * (table->nr_functions + 1) > table->size - table->functions + entry_size / 2)
		return diag_errno(diag, EBADMSG, ".gopclntab has fewer functions than it says");
	read_index(table, 0, &first, &off);
	last = first;
	for (uint32_t i = 1; i <= table->nr_functions; i++) {
		read_index(table, i, &vaddr, &off);
		if (vaddr < last)
			return diag_errno(diag, EBADMSG, "the functions of .gopclntab are not in order");
		last = vaddr;
	}
	if (go_file_off(table->elf, first, &file_off, &size) || last - first > size)
		return diag_errno(diag, EBADMSG, "the functions of .gopclntab are not in the file");
	return 0;
}

/* Function addresses are relative to runtime.text, inline trees to go:func.*. The program's module data has both. */
static int find_bases(struct go_pclntab *table, struct diag *diag)
{
	uint64_t text_start = 0;

	if (table->layout == GO_LAYOUT_116)
		return 0;
	if (!go_module_read(table, &table->text_vaddr, &table->go_func_vaddr))
		return 0;
	if (go_read_words(table->elf, table->vaddr + 24, &text_start, 1) || !text_start)
		return diag_errno(diag, EBADMSG, "a Go program without runtime.text");
	table->text_vaddr = text_start;
	return 0;
}

int go_pclntab_read(const struct elf_file *elf, struct diag *diag, struct go_pclntab **ret_table)
{
	CLEANUP(go_pclntab_freep) struct go_pclntab *table = NULL;
	int err;

	if (elf_file_machine(elf) != EM_X86_64)
		return -ENODATA;
	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	table->elf = elf;
	err = go_section_read(elf, diag, table);
	if (!err)
		err = read_header(table, diag);
	if (!err)
		err = find_bases(table, diag);
	if (!err)
		err = check_index(table, diag);
	if (!err)
		*ret_table = MOVE(table);
	return err;
}

uint32_t go_pclntab_nr_functions(const struct go_pclntab *table)
{
	return table->nr_functions;
}

/* Decodes the runtime._func at `off` from the start of the index. */
static bool read_function(const struct go_pclntab *table, uint64_t off, struct go_function *function)
{
	struct reader r = go_reader_at(table, table->functions, off);
	uint32_t name, nr_pcdata, nr_funcdata;

	reader_skip(&r, table->layout == GO_LAYOUT_116 ? 8 : 4); /* the entry address again */
	name = reader_u32(&r);
	reader_skip(&r, 8); /* size of arguments, deferreturn */
	function->pcsp = reader_u32(&r);
	function->pcfile = reader_u32(&r);
	function->pcln = reader_u32(&r);
	nr_pcdata = reader_u32(&r);
	function->unit = reader_u32(&r);
	function->start_line = table->layout == GO_LAYOUT_120 ? reader_u32(&r) : 0;
	reader_u8(&r); /* funcID: its numbers differ between versions, names do not */
	function->flags = reader_u8(&r);
	reader_u8(&r);
	nr_funcdata = reader_u8(&r);
	if (r.bad)
		return false;
	function->name = go_text(table, table->names, name);
	function->inline_index = 0;
	function->inline_tree = UINT32_MAX;
	if (table->layout == GO_LAYOUT_116 || nr_pcdata <= INLINE_INDEX_PCDATA || nr_funcdata <= INLINE_TREE_FUNCDATA)
		return true;
	reader_skip(&r, INLINE_INDEX_PCDATA * 4);
	function->inline_index = reader_u32(&r);
	reader_skip(&r, ((size_t)nr_pcdata - INLINE_INDEX_PCDATA - 1 + INLINE_TREE_FUNCDATA) * 4);
	function->inline_tree = reader_u32(&r);
	if (r.bad)
		function->inline_tree = UINT32_MAX;
	return true;
}

bool go_pclntab_function(const struct go_pclntab *table, uint32_t i, struct go_function *ret_function)
{
	struct go_function function = { 0 };
	uint64_t off, ignored;

	read_index(table, i, &function.start_vaddr, &off);
	read_index(table, i + 1, &function.end_vaddr, &ignored);
	if (!read_function(table, off, &function))
		return false;
	*ret_function = function;
	return true;
}

int go_pclntab_find(const struct go_pclntab *table, uint64_t elf_vaddr, struct go_function *ret_function)
{
	uint32_t lo = 0, hi = table->nr_functions + 1;
	struct go_function next;
	uint64_t vaddr, off;

	while (lo < hi) { /* how many begin at or before it */
		uint32_t mid = lo + (hi - lo) / 2;

		read_index(table, mid, &vaddr, &off);
		if (vaddr <= elf_vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || lo > table->nr_functions || !go_pclntab_function(table, lo - 1, ret_function))
		return -ENOENT;
	if (elf_vaddr + 1 == ret_function->end_vaddr && lo < table->nr_functions && go_pclntab_function(table, lo, &next) &&
	    go_is_signal_return(next.name))
		*ret_function = next;
	return 0;
}
