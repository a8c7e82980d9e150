// SPDX-License-Identifier: Apache-2.0
/* Sorted by start, each symbol linked to its parent: the nearest one before it that ends later. When the last symbol that starts at
 * or before an address ends too early, so do all between it and its parent: the links alone lead to the innermost one that
 * covers. 20 bytes per symbol and the file's string table. Layout: gABI chapter 4 "Symbol Table". */
#include "elf/symbols.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define MAX_SYMTAB_BYTES ((size_t)384 << 20) /* 16 M symbols */
#define MAX_STRTAB_BYTES ((size_t)1 << 30)
#define NO_PARENT	 UINT32_MAX

enum rank { RANK_GLOBAL, RANK_WEAK, RANK_LOCAL };

struct raw_symbol {
	uint64_t start, end;  /* end == start: not known */
	uint64_t section_end; /* 0: not known */
	uint32_t name;
	uint8_t rank;
	bool is_label; /* STT_NOTYPE */
};

struct extent {
	uint32_t size_bytes, name, parent;
};

struct symbol_table {
	uint64_t *starts; /* ascending; apart from the rest, so that a search touches little memory */
	struct extent *extents;
	uint32_t nr;
	bool is_dynamic;
	char *strings; /* ends in NUL */
	size_t strings_size;
};

struct raw_table {
	struct raw_symbol *symbols;
	size_t nr;
};

static void raw_table_done(struct raw_table *raw)
{
	free(raw->symbols);
}

void symbol_table_free(struct symbol_table *table)
{
	if (!table)
		return;
	free(table->starts);
	free(table->extents);
	free(table->strings);
	free(table);
}

/* The first section of a type. NULL: none. */
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

/* $a, $d, $t, $x mark code and data on Arm and RISC-V, .L is the assembler's own: places in functions, not functions. */
static bool names_a_function(const char *name)
{
	if (name[0] == '$' && name[1] && strchr("adtx", name[1]))
		return name[2] != '\0' && name[2] != '.';
	return name[0] != '\0' && !(name[0] == '.' && name[1] == 'L');
}

/* "memcpy@@GLIBC_2.14", as linkers write it into .symtab: the version is no part of the name. */
static void cut_version(char *name)
{
	char *at = strchr(name, '@');

	if (at && at > name)
		*at = '\0';
}

/* Whether the symbol stands for a function; then `raw` has all but its name's check. */
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
		return false; /* SHN_ABS numbers, SHN_COMMON; but SHN_XINDEX (section numbers from 65,280 up) may be code */
	}
	if (__builtin_add_overflow(raw->start, sym->st_size, &raw->end))
		raw->end = UINT64_MAX;
	if (bind == STB_WEAK)
		raw->rank = RANK_WEAK;
	else if (bind == STB_LOCAL)
		raw->rank = RANK_LOCAL;
	return true;
}

static int read_raw(const struct elf_file *elf, const struct elf_section *symtab, struct diag *diag, struct symbol_table *table,
		    struct raw_table *raw)
{
	CLEANUP(freep) void *bytes = NULL;
	void *strings = NULL;
	size_t size, nr;
	int err;

	if (symtab->entry_size != sizeof(Elf64_Sym) || symtab->link >= elf_file_nr_sections(elf))
		return diag_errno(diag, EBADMSG, "damaged header of section %s", symtab->name);
	err = elf_file_read_section(elf, symtab, MAX_SYMTAB_BYTES, diag, &bytes, &size);
	if (err)
		return err;
	err = elf_file_read_section(elf, elf_file_section(elf, symtab->link), MAX_STRTAB_BYTES, diag, &strings, &table->strings_size);
	if (err)
		return err;
	table->strings = strings;
	if (!table->strings_size || table->strings[table->strings_size - 1] != '\0')
		return diag_errno(diag, EBADMSG, "string table of section %s does not end", symtab->name);
	nr = size / sizeof(Elf64_Sym);
	raw->symbols = calloc(nr + 1, sizeof(*raw->symbols));
	if (!raw->symbols)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		Elf64_Sym sym;

		memcpy(&sym, (char *)bytes + i * sizeof(sym), sizeof(sym));
		if (sym.st_name >= table->strings_size || !take_symbol(elf, &sym, &raw->symbols[raw->nr]))
			continue;
		cut_version(table->strings + sym.st_name);
		raw->nr += names_a_function(table->strings + sym.st_name);
	}
	return raw->nr ? 0 : -ENODATA;
}

/* By start; of one start, the best alias last. */
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

/* The end of a symbol that the file gives no size: `next_start` is where the next one starts, `cover` the greatest end of the sized
 * ones that start before it. Its start when it has no extent at all. */
static uint64_t guess_end(const struct raw_symbol *symbol, uint64_t next_start, uint64_t cover)
{
	uint64_t end;

	if (__builtin_add_overflow(symbol->start, SYMBOL_MAX_GUESSED_BYTES, &end))
		end = UINT64_MAX;
	if (next_start < end)
		end = next_start;
	if (symbol->start < cover) {
		if (symbol->is_label)
			return symbol->start; /* a place in the function around it */
		if (cover < end)
			end = cover;
	}
	if (symbol->section_end && symbol->section_end < end)
		end = symbol->section_end;
	return end > symbol->start ? end : symbol->start;
}

/* The symbols [first, next) have one start, the best last. Gives each an end; what a better one covers as far, and labels (like
 * __start_text) beside a symbol with a size, stay with an empty extent. `group_end` is the greatest end among them. */
static void settle_group(struct raw_table *raw, size_t first, size_t next, uint64_t group_end, uint64_t cover)
{
	uint64_t start = raw->symbols[first].start, end = start;
	uint64_t next_start = next < raw->nr ? raw->symbols[next].start : UINT64_MAX;

	for (size_t i = next; i-- > first;) {
		struct raw_symbol *symbol = &raw->symbols[i];

		if (symbol->end == start && !(symbol->is_label && group_end > start))
			symbol->end = group_end > start ? group_end : guess_end(symbol, next_start, cover);
		if (symbol->end > end)
			end = symbol->end;
		else
			symbol->end = start;
	}
}

static void settle_extents(struct raw_table *raw)
{
	uint64_t cover = 0;
	size_t next;

	for (size_t first = 0; first < raw->nr; first = next) {
		uint64_t group_end = 0;

		for (next = first; next < raw->nr && raw->symbols[next].start == raw->symbols[first].start; next++)
			group_end = raw->symbols[next].end > group_end ? raw->symbols[next].end : group_end;
		settle_group(raw, first, next, group_end, cover);
		cover = group_end > cover ? group_end : cover;
	}
}

static uint64_t end_at(const struct symbol_table *table, uint32_t i)
{
	return table->starts[i] + table->extents[i].size_bytes;
}

static int fill_table(struct symbol_table *table, const struct raw_table *raw)
{
	size_t nr = 0;

	for (size_t i = 0; i < raw->nr; i++)
		nr += raw->symbols[i].end > raw->symbols[i].start;
	if (!nr)
		return -ENODATA;
	table->starts = calloc(nr, sizeof(*table->starts));
	table->extents = calloc(nr, sizeof(*table->extents));
	if (!table->starts || !table->extents)
		return -ENOMEM;
	for (size_t i = 0; i < raw->nr; i++) {
		const struct raw_symbol *symbol = &raw->symbols[i];
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

static int read_table(const struct elf_file *elf, uint32_t type, struct diag *diag, struct symbol_table **ret_table)
{
	const struct elf_section *section = section_of_type(elf, type);
	CLEANUP(symbol_table_freep) struct symbol_table *table = NULL;
	CLEANUP(raw_table_done) struct raw_table raw = { 0 };
	int err;

	if (!section || section->size == 0)
		return -ENODATA;
	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	table->is_dynamic = type == SHT_DYNSYM;
	err = read_raw(elf, section, diag, table, &raw);
	if (err)
		return err;
	qsort_r(raw.symbols, raw.nr, sizeof(*raw.symbols), compare_symbols, table->strings);
	settle_extents(&raw);
	err = fill_table(table, &raw);
	if (err)
		return err;
	*ret_table = MOVE(table);
	return 0;
}

int symbol_table_read(const struct elf_file *elf, struct diag *diag, struct symbol_table **ret_table)
{
	struct diag symtab_diag = { 0 };
	int err = read_table(elf, SHT_SYMTAB, &symtab_diag, ret_table), dynsym_err;

	if (!err || err == -ENOMEM)
		return err;
	dynsym_err = read_table(elf, SHT_DYNSYM, diag, ret_table);
	if (dynsym_err == -ENODATA && err != -ENODATA)
		return diag_errno(diag, -err, "%s", symtab_diag.text);
	return dynsym_err;
}

int symbol_table_find(const struct symbol_table *table, uint64_t elf_vaddr, struct symbol *ret_symbol)
{
	uint32_t lo = 0, hi = table->nr, at;

	while (lo < hi) { /* how many start at or below elf_vaddr */
		uint32_t mid = lo + (hi - lo) / 2;

		if (table->starts[mid] <= elf_vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	at = lo ? lo - 1 : NO_PARENT;
	for (uint32_t links = 0; at != NO_PARENT && links < SYMBOL_MAX_NESTING; links++, at = table->extents[at].parent) {
		const struct extent *extent = &table->extents[at];

		if (elf_vaddr - table->starts[at] >= extent->size_bytes)
			continue;
		*ret_symbol = (struct symbol){ .elf_vaddr = table->starts[at],
					       .size_bytes = extent->size_bytes,
					       .name = table->strings + extent->name };
		return 0;
	}
	return -ENOENT;
}

uint32_t symbol_table_size(const struct symbol_table *table)
{
	return table->nr;
}

bool symbol_table_is_dynamic(const struct symbol_table *table)
{
	return table->is_dynamic;
}
