/* SPDX-License-Identifier: Apache-2.0 */
/* symbols: the function symbols of one ELF file (.symtab, else .dynsym, both when they complement each other), sorted by
 * address. Immutable once read; any thread may look up. Hostile input: capped and checked. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

struct symbol {
	uint64_t elf_vaddr, size_bytes; /* size 0 in the file: up to the next symbol of its section, capped */
	const char *name;               /* as linked (mangled), borrowed from the table */
};

struct symbol_table;
/* 0; -ENODATA when the file has no function symbols; -EBADMSG; -ENOMEM. Borrows `elf` for the call. */
MUST_CHECK int symbol_table_read(const struct elf_file *elf, struct diag *diag, struct symbol_table **ret_table);
void symbol_table_free(struct symbol_table *table); /* takes NULL */
/* The symbol that covers elf_vaddr; among aliases always the same one (global before weak before local, then the shorter,
 * then the lesser name). 0; -ENOENT: no symbol covers it (a gap is a gap). */
MUST_CHECK int symbol_table_find(const struct symbol_table *table, uint64_t elf_vaddr, struct symbol *ret_symbol);
uint32_t symbol_table_size(const struct symbol_table *table);
