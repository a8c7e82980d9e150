/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_names: the string table of a symbol table, read part by part: of megabytes of names a few are asked for, mostly in their order.
 * Private to symbol_list.c. Hostile input: capped and checked. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "elf/elf_file.h"

struct symbol_names {
	const struct elf_file *elf; /* borrowed */
	const struct elf_section *section;
	char *part; /* what was read last: from here, so many bytes, with room for a NUL */
	uint64_t from, total;
	size_t size, capacity;
};

/* 0, or an error as of elf_file_read_section; -EBADMSG also for one that does not end in a NUL. */
MUST_CHECK int symbol_names_open(struct symbol_names *names, const struct elf_file *elf, const struct elf_section *section,
				 struct diag *diag);
void symbol_names_done(struct symbol_names *names);
/* Returns the name at an offset; borrowed until the next call. NULL: outside, of absurd length, or it cannot be read. */
char *symbol_names_at(struct symbol_names *names, uint64_t off);
