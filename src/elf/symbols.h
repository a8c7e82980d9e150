/* SPDX-License-Identifier: Apache-2.0 */
/* symbols: the functions of one ELF file by their symbols (.symtab, or .dynsym and .gnu_debugdata where that has none), and the stubs of
 * its PLT as "name@plt", sorted by address. Immutable once read; any thread may look up. Hostile input: capped and checked. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

/* A function whose size the file does not tell reaches to the end of the FDE that covers it; without one up to the next symbol or FDE, its
 * section's end, this far, or, where local names were taken away and so the next function may have none, as far as its
 * instructions surely go on. A greater stretch without a symbol is other code that was stripped. */
#define SYMBOL_MAX_GUESSED_BYTES ((uint64_t)64 << 10)
/* Of symbols that lie in each other, the innermost is found through so many that end before the address. */
#define SYMBOL_MAX_NESTING 64

struct symbol {
	uint64_t elf_vaddr, size_bytes; /* size 0 in the file: guessed as above */
	const char *name;		/* as linked (mangled), borrowed from the table */
};

struct symbol_table;
/* 0; -ENODATA when the file has no function symbols; -EBADMSG; -EFBIG; -ENOMEM. Borrows `elf` for the call. */
MUST_CHECK int symbol_table_read(const struct elf_file *elf, struct diag *diag, struct symbol_table **ret_table);
/* The same by the .symtab of `debug`, the file that the symbols of `elf` were moved to. -ENODATA: it has none. */
MUST_CHECK int symbol_table_read_debug(const struct elf_file *elf, const struct elf_file *debug, struct diag *diag,
				       struct symbol_table **ret_table);
void symbol_table_free(struct symbol_table *table); /* takes NULL */
static inline void symbol_table_freep(struct symbol_table **table)
{
	symbol_table_free(*table);
}
/* The innermost symbol that covers elf_vaddr (of those, the last to start); among aliases always the same one (not an untyped label,
 * then global before weak before local, then the shorter, then the lesser name). 0; -ENOENT: no symbol covers it (a gap is a gap). */
MUST_CHECK int symbol_table_find(const struct symbol_table *table, uint64_t elf_vaddr, struct symbol *ret_symbol);
uint32_t symbol_table_size(const struct symbol_table *table);
/* Not from a .symtab: a debug file would know more. */
bool symbol_table_is_dynamic(const struct symbol_table *table);
