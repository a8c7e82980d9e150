/* SPDX-License-Identifier: Apache-2.0 */
/* symbols: the functions of one ELF file by their symbols (.symtab, or .dynsym and .gnu_debugdata if that has none), and the stubs of its
 * PLT as "name@plt", sorted by address. Immutable once read; any thread may look up. Hostile input: capped and checked. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

/* A function without a size in the file reaches to the end of the FDE that covers it; without one, to the next FDE or this far. It always
 * ends at the next symbol, the end of a sized symbol around it, or its section's end. If it has no FDE and local names were stripped, so
 * that the next function may have no name, it reaches as far as its instructions surely go on. A longer stretch without a symbol is other
 * code that was stripped. */
#define SYMBOL_MAX_GUESSED_BYTES ((uint64_t)64 << 10)
/* How many nested symbols that end before the address are passed to find the innermost one. */
#define SYMBOL_MAX_NESTING 64

struct symbol {
	uint64_t elf_vaddr, size_bytes; /* size 0 in the file: guessed as above */
	const char *name;		/* as linked (mangled), borrowed from the table */
};

/* In any order. */
struct symbol_addresses {
	const uint64_t *elf_vaddrs;
	size_t nr;
};

struct symbol_table;
/* With `addresses` the table is small, read in a tenth of the time, and only these may be asked for; NULL: all. 0; -ENODATA: the file has
 * no function symbols; -EBADMSG; -EFBIG; -ENOMEM. Borrows `elf` and the addresses for the call. */
MUST_CHECK int symbol_table_read(const struct elf_file *elf, const struct symbol_addresses *addresses, struct diag *diag,
				 struct symbol_table **ret_table);
/* The same from the .symtab of `debug`, the file that has the symbols of `elf`. -ENODATA: it has none. */
MUST_CHECK int symbol_table_read_debug(const struct elf_file *elf, const struct elf_file *debug, const struct symbol_addresses *addresses,
				       struct diag *diag, struct symbol_table **ret_table);
void symbol_table_free(struct symbol_table *table); /* accepts NULL */
static inline void symbol_table_freep(struct symbol_table **table)
{
	symbol_table_free(*table);
}
/* Finds the innermost symbol that covers elf_vaddr (of those, the last to start). Among aliases always the same one: not an untyped label;
 * global before weak before local; then the shorter, then the lesser name. 0; -ENOENT: no symbol covers it (a gap is a gap). */
MUST_CHECK int symbol_table_find(const struct symbol_table *table, uint64_t elf_vaddr, struct symbol *ret_symbol);
/* The addresses around elf_vaddr, from *ret_start to below *ret_end, for which symbol_table_find finds the same in a table of all. */
void symbol_table_extent(const struct symbol_table *table, uint64_t elf_vaddr, uint64_t *ret_start, uint64_t *ret_end);
uint32_t symbol_table_size(const struct symbol_table *table);
/* Not from a .symtab: a debug file would have more. */
bool symbol_table_is_dynamic(const struct symbol_table *table);
