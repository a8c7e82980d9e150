// SPDX-License-Identifier: Apache-2.0
/* Symbols are sorted by start. Each links to its parent: the nearest one before it that ends later. When the last symbol that starts at or
 * before an address ends too early, so do all between it and its parent. So the links alone lead to the innermost one that covers the
 * address. 20 bytes per symbol and the file's string table. */
#include "symbols/symbols.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "symbols/minidebug.h"
#include "symbols/symbol_list.h"

#define NO_PARENT UINT32_MAX

struct extent {
	uint32_t size_bytes, name, parent;
};

struct symbol_table {
	uint64_t *starts; /* ascending; a separate array, so that a search touches little memory */
	struct extent *extents;
	uint32_t nr;
	bool is_dynamic;
	struct symbol_focus focus; /* the addresses that may be asked for; without places: all */
	char *strings;
};

void symbol_table_free(struct symbol_table *table)
{
	if (!table)
		return;
	free(table->starts);
	free(table->extents);
	symbol_focus_done(&table->focus);
	free(table->strings);
	free(table);
}

static uint64_t end_at(const struct symbol_table *table, uint32_t i)
{
	return table->starts[i] + table->extents[i].size_bytes;
}

static int fill_table(struct symbol_table *table, const struct symbol_list *list)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < list->nr; i++)
		nr += list->symbols[i].end > list->symbols[i].start;
	if (!nr && !(list->focus && (list->has_function || list->has_plt)))
		return -ENODATA;
	table->starts = calloc(nr + 1, sizeof(*table->starts));
	table->extents = calloc(nr + 1, sizeof(*table->extents));
	if (!table->starts || !table->extents)
		return -ENOMEM;
	for (uint32_t i = 0; i < list->nr; i++) {
		const struct raw_symbol *symbol = &list->symbols[i];
		uint64_t size = symbol->end - symbol->start;
		uint32_t at = table->nr, parent = at ? at - 1 : NO_PARENT;

		if (!size)
			continue;
		table->starts[at] = symbol->start;
		table->extents[at].size_bytes = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
		table->extents[at].name = symbol->name;
		while (parent != NO_PARENT && end_at(table, parent) <= end_at(table, at))
			parent = table->extents[parent].parent;
		table->extents[at].parent = parent;
		table->nr++;
	}
	return 0;
}

/* Adds .dynsym and .gnu_debugdata. */
static int add_dynamic(struct symbol_list *list, const struct elf_file *elf, struct diag *diag)
{
	CLEANUP(minidebug_done) struct minidebug minidebug = { 0 };
	int dynsym_err = symbol_list_add(list, elf, SHT_DYNSYM, diag), err;

	if (dynsym_err == -ENOMEM)
		return dynsym_err;
	err = minidebug_open(elf, NULL, &minidebug);
	if (!err)
		err = symbol_list_add(list, minidebug.elf, SHT_SYMTAB, NULL);
	if (!err || err == -ENOMEM)
		return err;
	return dynsym_err;
}

/* Adds the best that the file has itself. */
static int add_own(struct symbol_list *list, const struct elf_file *elf, struct diag *diag, bool *ret_is_dynamic)
{
	struct diag symtab_diag = { 0 };
	int err = symbol_list_add(list, elf, SHT_SYMTAB, &symtab_diag), dynamic_err;

	if (!err || err == -ENOMEM)
		return err;
	*ret_is_dynamic = true;
	dynamic_err = add_dynamic(list, elf, diag);
	if (dynamic_err == -ENODATA && err != -ENODATA)
		return diag_errno(diag, -err, "%s", symtab_diag.text);
	return dynamic_err == -ENODATA ? 0 : dynamic_err; /* without a function of its own, it may have stubs */
}

/* `debug`: the file that has the symbols of `elf`; NULL: it has them itself. */
static int read_table(const struct elf_file *elf, const struct elf_file *debug, const struct symbol_addresses *addresses,
		      struct diag *diag, struct symbol_table **ret_table)
{
	CLEANUP(symbol_table_freep) struct symbol_table *table = calloc(1, sizeof(*table));
	CLEANUP(symbol_list_done) struct symbol_list list = SYMBOL_LIST_INIT(NULL);
	int err = table ? 0 : -ENOMEM;

	if (!err && addresses) {
		err = symbol_focus_init(&table->focus, addresses->elf_vaddrs, addresses->nr);
		list.focus = &table->focus;
	}
	if (!err)
		err = symbol_list_read_plt(&list, elf);
	if (!err && debug)
		err = symbol_list_add(&list, debug, SHT_SYMTAB, diag);
	else if (!err)
		err = add_own(&list, elf, diag, &table->is_dynamic);
	if (!err)
		err = symbol_list_add_plt(&list) ?: symbol_list_settle(&list, elf) ?: fill_table(table, &list);
	if (err)
		return err;
	table->strings = MOVE(list.strings.data);
	*ret_table = MOVE(table);
	return 0;
}

int symbol_table_read(const struct elf_file *elf, const struct symbol_addresses *addresses, struct diag *diag,
		      struct symbol_table **ret_table)
{
	return read_table(elf, NULL, addresses, diag, ret_table);
}

int symbol_table_read_debug(const struct elf_file *elf, const struct elf_file *debug, const struct symbol_addresses *addresses,
			    struct diag *diag, struct symbol_table **ret_table)
{
	return read_table(elf, debug, addresses, diag, ret_table);
}

/* Goes from the last symbol that starts at or before the address outwards, past those that end before it, to the innermost one that covers
 * it: its number, or NO_PARENT. *ret_start: no symbol on the way starts or ends between there and the address. */
static uint32_t innermost(const struct symbol_table *table, uint64_t elf_vaddr, uint64_t *ret_start)
{
	uint32_t nr = array_count_at_most(table->starts, table->nr, elf_vaddr), at = nr ? nr - 1 : NO_PARENT;

	*ret_start = nr ? table->starts[at] : 0;
	for (uint32_t links = 0; at != NO_PARENT && links < SYMBOL_MAX_NESTING; links++, at = table->extents[at].parent) {
		uint64_t end = table->starts[at] + table->extents[at].size_bytes;

		if (elf_vaddr < end)
			return at;
		if (end > *ret_start)
			*ret_start = end;
	}
	return NO_PARENT;
}

int symbol_table_find(const struct symbol_table *table, uint64_t elf_vaddr, struct symbol *ret_symbol)
{
	uint64_t start;
	uint32_t at = innermost(table, elf_vaddr, &start);

	if (at == NO_PARENT || (table->focus.places && !symbol_focus_find(&table->focus, elf_vaddr)))
		return -ENOENT;
	*ret_symbol = (struct symbol){ .elf_vaddr = table->starts[at],
				       .size_bytes = table->extents[at].size_bytes,
				       .name = table->strings + table->extents[at].name };
	return 0;
}

/* Leaves out symbols that the table lacks. */
static void narrow(const struct symbol_table *table, uint64_t elf_vaddr, uint64_t *start, uint64_t *end)
{
	const struct symbol_place *place = symbol_focus_find(&table->focus, elf_vaddr);
	const struct symbol_place own = { .start = elf_vaddr, .next = elf_vaddr + 1 };

	if (!place)
		place = &own;
	if (place->start > *start)
		*start = place->start;
	if (place->past > *start)
		*start = place->past;
	if (place->next < *end)
		*end = place->next;
}

void symbol_table_extent(const struct symbol_table *table, uint64_t elf_vaddr, uint64_t *ret_start, uint64_t *ret_end)
{
	uint32_t nr = array_count_at_most(table->starts, table->nr, elf_vaddr), at = innermost(table, elf_vaddr, ret_start);
	uint64_t next = nr < table->nr ? table->starts[nr] : UINT64_MAX;
	uint64_t end = at == NO_PARENT ? UINT64_MAX : table->starts[at] + table->extents[at].size_bytes;

	*ret_end = next < end ? next : end;
	if (table->focus.places)
		narrow(table, elf_vaddr, ret_start, ret_end);
}

uint32_t symbol_table_size(const struct symbol_table *table)
{
	return table->nr;
}

bool symbol_table_is_dynamic(const struct symbol_table *table)
{
	return table->is_dynamic;
}
