// SPDX-License-Identifier: Apache-2.0
#include "elf/symbol_value.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define MAX_TABLE_BYTES ((size_t)256 << 20)

static bool is_named(const void *names, size_t names_size, uint32_t at, const char *name)
{
	size_t size = strlen(name) + 1;

	return at < names_size && names_size - at >= size && memcmp((const char *)names + at, name, size) == 0;
}

int symbol_value(const struct elf_file *elf, const char *name, struct diag *diag, uint64_t *ret_elf_vaddr)
{
	const struct elf_section *section = elf_file_find_section(elf, ".symtab");
	CLEANUP(freep) void *symbols = NULL;
	CLEANUP(freep) void *names = NULL;
	size_t size, names_size;
	int err;

	if (!section || section->link >= elf_file_nr_sections(elf))
		return -ENODATA;
	err = elf_file_read_section(elf, section, MAX_TABLE_BYTES, diag, &symbols, &size);
	if (!err)
		err = elf_file_read_section(elf, elf_file_section(elf, section->link), MAX_TABLE_BYTES, diag, &names, &names_size);
	if (err)
		return err;
	for (size_t i = 0; i < size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym symbol;

		memcpy(&symbol, (const char *)symbols + i * sizeof(symbol), sizeof(symbol));
		if (symbol.st_shndx == SHN_UNDEF || !is_named(names, names_size, symbol.st_name, name))
			continue;
		*ret_elf_vaddr = symbol.st_value;
		return 0;
	}
	return -ENOENT;
}
