// SPDX-License-Identifier: Apache-2.0
/* Layout of symbol tables: gABI chapter 4 "Symbol Table". */
#include "symbols/symbol_list.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "symbols/symbol_names.h"

#define MAX_SYMTAB_BYTES ((size_t)384 << 20) /* 16 M symbols */
#define MAX_SYMBOLS	 (UINT32_MAX / 2)

void symbol_list_done(struct symbol_list *list)
{
	free(list->symbols);
	buffer_done(&list->strings);
	plt_names_done(&list->plt);
}

/* Returns the first section of a type; NULL: none. */
static const struct elf_section *section_of_type(const struct elf_file *elf, uint32_t type)
{
	for (uint32_t i = 0; i < elf_file_nr_sections(elf); i++) {
		if (elf_file_section(elf, i)->type == type)
			return elf_file_section(elf, i);
	}
	return NULL;
}

static bool in_executable_segment(const struct elf_file *elf, uint64_t elf_vaddr)
{
	for (uint32_t i = 0; i < elf_file_nr_segments(elf); i++) {
		const struct elf_segment *segment = elf_file_segment(elf, i);

		if ((segment->flags & PF_X) && elf_vaddr >= segment->vaddr && elf_vaddr - segment->vaddr < segment->mem_size)
			return true;
	}
	return false;
}

/* $a, $d, $t, $x mark code and data on Arm and RISC-V, .L is the assembler's own, .annobin marks notes of Fedora's compilers: these are
 * locations in functions, not functions. */
static bool names_a_function(const char *name)
{
	if (name[0] == '$' && name[1] && strchr("adtx", name[1]))
		return name[2] != '\0' && name[2] != '.';
	return name[0] != '\0' && !(name[0] == '.' && name[1] == 'L') && strncmp(name, ".annobin", 8) != 0;
}

/* "memcpy@@GLIBC_2.14", as linkers write it into .symtab: the version is not part of the name. */
static void cut_version(char *name)
{
	char *at = strchr(name, '@');

	if (at && at > name)
		*at = '\0';
}

/* Does the symbol mark a function? Then fills `raw`; the name is not checked yet. */
static bool take_symbol(const struct elf_file *elf, const Elf64_Sym *sym, struct raw_symbol *raw)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info), bind = ELF64_ST_BIND(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
		return false;
	*raw = (struct raw_symbol){ .start = sym->st_value, .name = sym->st_name, .is_label = type == STT_NOTYPE };
	if (sym->st_shndx < elf_file_nr_sections(elf)) {
		const struct elf_section *section = elf_file_section(elf, sym->st_shndx);

		if (!(section->flags & SHF_EXECINSTR))
			return false;
		if (__builtin_add_overflow(section->vaddr, section->size, &raw->section_end))
			raw->section_end = 0;
	} else if (type == STT_NOTYPE || !in_executable_segment(elf, sym->st_value)) {
		/* Excludes SHN_ABS numbers and SHN_COMMON; but SHN_XINDEX (section numbers from 65,280 up) may be code. */
		return false;
	}
	if (__builtin_add_overflow(raw->start, sym->st_size, &raw->end))
		raw->end = UINT64_MAX;
	if (bind == STB_WEAK)
		raw->rank = SYMBOL_WEAK;
	else if (bind == STB_LOCAL)
		raw->rank = SYMBOL_LOCAL;
	return true;
}

/* The symbols of one table. */
struct table_symbols {
	const struct elf_file *elf;
	const char *bytes;
	size_t nr;
	struct symbol_names names;
};

/* False: symbol i is of no function, whatever its name is. ret_raw->name is its place in the table's names. */
static bool symbol_at(const struct table_symbols *table, size_t i, struct raw_symbol *ret_raw)
{
	Elf64_Sym sym;

	memcpy(&sym, table->bytes + i * sizeof(sym), sizeof(sym));
	return take_symbol(table->elf, &sym, ret_raw);
}

/* NULL: it is no function. An empty cold part made by gcc is none: the code at its address belongs to another function. */
static const char *function_name(struct table_symbols *table, const struct raw_symbol *raw)
{
	char *name = symbol_names_at(&table->names, raw->name);

	if (!name)
		return NULL;
	cut_version(name);
	return names_a_function(name) && (raw->end != raw->start || !strstr(name, ".cold")) ? name : NULL;
}

/* Names are looked at only where they matter: that is what takes the time. */
static void see_symbols(struct symbol_list *list, struct table_symbols *table)
{
	for (size_t i = 0; i < table->nr; i++) {
		struct raw_symbol raw;

		if (!symbol_at(table, i, &raw) ||
		    (list->has_function && (list->has_local || raw.rank != SYMBOL_LOCAL) &&
		     !symbol_focus_matters(list->focus, raw.start, raw.end)) ||
		    !function_name(table, &raw))
			continue;
		list->has_function = true;
		list->has_local |= raw.rank == SYMBOL_LOCAL;
		symbol_focus_see(list->focus, raw.start, raw.end);
	}
	symbol_focus_settle(list->focus);
}

/* `raw` gets its name. 0; -ENOMEM; -EFBIG. */
static int append(struct symbol_list *list, struct raw_symbol raw, const char *name, const char *suffix)
{
	raw.name = (uint32_t)list->strings.size;
	buffer_text(&list->strings, name);
	buffer_append(&list->strings, suffix, strlen(suffix) + 1);
	if (list->strings.err)
		return list->strings.err;
	if (!array_grow(&list->symbols, list->nr, &list->capacity, sizeof(*list->symbols), 64, MAX_SYMBOLS))
		return -ENOMEM;
	list->symbols[list->nr++] = raw;
	return 0;
}

static int take_symbols(struct symbol_list *list, struct table_symbols *table)
{
	int err = 0;

	if (list->focus)
		see_symbols(list, table);
	for (size_t i = 0; i < table->nr && !err; i++) {
		struct raw_symbol raw;
		const char *name;

		if (!symbol_at(table, i, &raw) || (list->focus && !symbol_focus_keeps(list->focus, raw.start, raw.end)) ||
		    !(name = function_name(table, &raw)))
			continue;
		list->has_function = true;
		list->has_local |= raw.rank == SYMBOL_LOCAL;
		err = append(list, raw, name, "");
	}
	return err ? err : list->has_function ? 0 : -ENODATA;
}

int symbol_list_add(struct symbol_list *list, const struct elf_file *elf, uint32_t type, struct diag *diag)
{
	const struct elf_section *section = section_of_type(elf, type);
	struct table_symbols table = { .elf = elf };
	void *bytes;
	size_t size;
	int err;

	if (!section || section->size == 0)
		return -ENODATA;
	if (section->entry_size != sizeof(Elf64_Sym) || section->link >= elf_file_nr_sections(elf))
		return diag_errno(diag, EBADMSG, "damaged header of section %s", section->name);
	err = elf_file_read_section(elf, section, MAX_SYMTAB_BYTES, diag, &bytes, &size);
	if (err)
		return err;
	table.bytes = bytes;
	table.nr = size / sizeof(Elf64_Sym);
	err = symbol_names_open(&table.names, elf, elf_file_section(elf, section->link), diag) ?: take_symbols(list, &table);
	symbol_names_done(&table.names);
	free(bytes);
	return err;
}

/* Sorts by start; among symbols with the same start, the best name comes last. */
static int compare_symbols(const void *left, const void *right, void *strings)
{
	const struct raw_symbol *a = left, *b = right;
	const char *name_a, *name_b;
	size_t size_a, size_b;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank > b->rank ? -1 : 1;
	name_a = (const char *)strings + a->name;
	name_b = (const char *)strings + b->name;
	size_a = strlen(name_a);
	size_b = strlen(name_b);
	if (size_a != size_b)
		return size_a > size_b ? -1 : 1;
	return strcmp(name_b, name_a);
}

/* Those from number `from` on. */
static void sort(struct symbol_list *list, uint32_t from)
{
	if (list->nr > from)
		qsort_r(list->symbols + from, list->nr - from, sizeof(*list->symbols), compare_symbols, list->strings.data);
}

/* Sorts the few from number `nr_sorted` on into those before. 0 or -ENOMEM. */
static int merge(struct symbol_list *list, uint32_t nr_sorted)
{
	uint32_t nr_few = list->nr - nr_sorted, to = list->nr;
	CLEANUP(freep) struct raw_symbol *few = nr_few ? calloc(nr_few, sizeof(*few)) : NULL;

	if (!few)
		return nr_few ? -ENOMEM : 0;
	sort(list, nr_sorted);
	memcpy(few, list->symbols + nr_sorted, nr_few * sizeof(*few));
	while (nr_few) { /* from the end; what is left of the others is in its place */
		bool is_few = !nr_sorted || compare_symbols(&few[nr_few - 1], &list->symbols[nr_sorted - 1], list->strings.data) >= 0;

		list->symbols[--to] = is_few ? few[--nr_few] : list->symbols[--nr_sorted];
	}
	return 0;
}

/* Returns the best name of the function that starts at elf_vaddr. Searches the first `nr` symbols, which are sorted. NULL: none. */
static const char *name_at(const struct symbol_list *list, uint32_t nr, uint64_t elf_vaddr)
{
	uint32_t nr_before = array_count_starts(list->symbols, nr, sizeof(*list->symbols), elf_vaddr);
	const struct raw_symbol *last = nr_before ? &list->symbols[nr_before - 1] : NULL;

	return last && last->start == elf_vaddr ? list->strings.data + last->name : NULL;
}

static bool is_plt(const struct elf_section *section)
{
	return (section->flags & SHF_EXECINSTR) && plt_names_is_section(section->name);
}

/* Is one of the addresses in a section of stubs? If none is, each such section is a symbol without a name. */
static bool wants_plt(struct symbol_list *list, const struct elf_file *elf)
{
	bool is_wanted = !list->focus;

	for (uint32_t i = 0; i < elf_file_nr_sections(elf) && !is_wanted; i++) {
		const struct elf_section *section = elf_file_section(elf, i);

		is_wanted = is_plt(section) && symbol_focus_has(list->focus, section->vaddr, section->vaddr + section->size);
	}
	for (uint32_t i = 0; i < elf_file_nr_sections(elf) && !is_wanted; i++) {
		const struct elf_section *section = elf_file_section(elf, i);

		if (!is_plt(section))
			continue;
		symbol_focus_see(list->focus, section->vaddr, section->vaddr + section->size);
		list->has_plt = true;
	}
	if (!is_wanted)
		symbol_focus_settle(list->focus);
	return is_wanted;
}

/* Drops the stubs that decide about no address. The function that chooses a stub's target gives it its name, so it is kept, too. */
static int focus_plt(struct symbol_list *list)
{
	struct plt_entry *entries = (struct plt_entry *)list->plt.entries.data;
	size_t nr_entries = list->plt.entries.size / sizeof(*entries), nr = 0;
	int err = 0;

	for (size_t i = 0; i < nr_entries; i++)
		symbol_focus_see(list->focus, entries[i].elf_vaddr, entries[i].elf_vaddr + entries[i].size_bytes);
	symbol_focus_settle(list->focus);
	list->has_plt = nr_entries;
	for (size_t i = 0; i < nr_entries; i++) {
		if (symbol_focus_keeps(list->focus, entries[i].elf_vaddr, entries[i].elf_vaddr + entries[i].size_bytes))
			entries[nr++] = entries[i];
	}
	list->plt.entries.size = nr * sizeof(*entries);
	for (size_t i = 0; i < nr && !err; i++)
		err = entries[i].resolver_vaddr ? symbol_focus_add(list->focus, entries[i].resolver_vaddr) : 0;
	return err;
}

int symbol_list_read_plt(struct symbol_list *list, const struct elf_file *elf)
{
	int err = wants_plt(list, elf) ? plt_names_read(elf, &list->plt) : -ENODATA;

	if (!err && list->focus)
		err = focus_plt(list);
	return err == -ENOMEM ? err : 0;
}

static int add_stubs(struct symbol_list *list)
{
	const struct plt_entry *entries = (const struct plt_entry *)list->plt.entries.data;
	size_t nr_entries = list->plt.entries.size / sizeof(*entries);
	uint32_t nr_known = list->nr;
	int err = 0;

	for (size_t i = 0; i < nr_entries && !err; i++) {
		const struct plt_entry *entry = &entries[i];
		const char *name = entry->resolver_vaddr ? name_at(list, nr_known, entry->resolver_vaddr) : list->plt.strings + entry->name;
		CLEANUP(freep) char *copy = name ? strdup(name) : NULL; /* appending may move the list's names */
		const struct raw_symbol stub = { .start = entry->elf_vaddr, .end = entry->elf_vaddr + entry->size_bytes };

		if (name)
			err = copy ? append(list, stub, copy, "@plt") : -ENOMEM;
	}
	if (err)
		list->nr = nr_known;
	return err;
}

int symbol_list_add_plt(struct symbol_list *list)
{
	uint32_t nr_known = list->nr;
	int err;

	sort(list, 0);
	err = add_stubs(list) ?: merge(list, nr_known);
	return err == -ENOMEM ? err : 0;
}
