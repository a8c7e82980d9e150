// SPDX-License-Identifier: Apache-2.0
#include "elf/dynamic_relocation.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "elf/dynamic_symbol.h"

#define AT_ONCE 64u

struct search {
	const struct elf_file *elf;
	const struct dynamic_section *section;
	uint32_t *budget;
	uint64_t slot; /* wanted, unless there are types */
	const char *name; /* NULL: no symbol */
	const int64_t *addend; /* NULL: any */
	const uint32_t *types;
	uint32_t nr_types;
};

static bool is_type(const struct search *search, uint32_t type)
{
	for (uint32_t i = 0; i < search->nr_types; i++) {
		if (search->types[i] == type)
			return true;
	}
	return false;
}

/* Returns 1, 0 or -EBADMSG. */
static int is_wanted(const struct search *search, const Elf64_Rela *relocation)
{
	uint64_t symbol_number = ELF64_R_SYM(relocation->r_info);
	Elf64_Sym symbol;

	if (!search->nr_types)
		return relocation->r_offset == search->slot;
	if (!symbol_number != !search->name || !is_type(search, (uint32_t)ELF64_R_TYPE(relocation->r_info)))
		return 0;
	if (!search->name)
		return !search->addend || relocation->r_addend == *search->addend;
	if (dynamic_section_symbol(search->elf, search->section, symbol_number, &symbol))
		return -EBADMSG;
	return dynamic_section_is_name(search->elf, search->section, symbol.st_name, search->name);
}

static int take(const struct search *search, const Elf64_Rela *relocation, struct dynamic_relocation *ret_relocation)
{
	struct dynamic_relocation found = {
		.slot = relocation->r_offset,
		.addend = relocation->r_addend,
		.type = (uint32_t)ELF64_R_TYPE(relocation->r_info),
		.symbol = (uint32_t)ELF64_R_SYM(relocation->r_info),
	};
	Elf64_Sym symbol;

	if (found.symbol) {
		if (dynamic_section_symbol(search->elf, search->section, found.symbol, &symbol) ||
		    dynamic_section_name(search->elf, search->section, symbol.st_name, found.name))
			return -EBADMSG;
		if (symbol.st_shndx != SHN_UNDEF)
			found.symbol_elf_vaddr = symbol.st_value;
	}
	*ret_relocation = found;
	return 0;
}

static int find_in(const struct search *search, uint64_t first, uint64_t elf_vaddr, uint64_t size,
		   struct dynamic_relocation *ret_relocation)
{
	uint64_t nr = size / sizeof(Elf64_Rela);

	while (first < nr) {
		uint64_t nr_now = nr - first < AT_ONCE ? nr - first : AT_ONCE;
		Elf64_Rela relocations[AT_ONCE];

		if (*search->budget < nr_now)
			return -EFBIG;
		*search->budget -= (uint32_t)nr_now;
		if (elf_file_read_vaddr(search->elf, elf_vaddr + first * sizeof(relocations[0]), relocations,
					nr_now * sizeof(relocations[0])))
			return -EBADMSG;
		for (uint64_t i = 0; i < nr_now; i++) {
			int wanted = is_wanted(search, &relocations[i]);

			if (wanted)
				return wanted < 0 ? wanted : take(search, &relocations[i], ret_relocation);
		}
		first += nr_now;
	}
	return -ENOENT;
}

static int find(const struct search *search, struct dynamic_relocation *ret_relocation)
{
	const struct dynamic_section *section = search->section;
	int err = find_in(search, 0, section->plt_relocations, section->plt_relocations_bytes, ret_relocation);

	return err == -ENOENT ? find_in(search, section->nr_relative, section->relocations, section->relocations_bytes, ret_relocation)
			      : err;
}

int dynamic_relocation_find(const struct elf_file *elf, const struct dynamic_section *section, uint64_t slot, uint32_t *budget,
			    struct dynamic_relocation *ret_relocation)
{
	const struct search search = { .elf = elf, .section = section, .slot = slot, .budget = budget };

	return find(&search, ret_relocation);
}

int dynamic_relocation_find_symbol(const struct elf_file *elf, const struct dynamic_section *section, const char *name,
				   const uint32_t *types, uint32_t nr_types, uint32_t *budget, struct dynamic_relocation *ret_relocation)
{
	const struct search search = {
		.elf = elf, .section = section, .name = name, .types = types, .nr_types = nr_types, .budget = budget
	};

	return find(&search, ret_relocation);
}

int dynamic_relocation_find_bare(const struct elf_file *elf, const struct dynamic_section *section, uint32_t type, const int64_t *addend,
				 uint32_t *budget, struct dynamic_relocation *ret_relocation)
{
	const struct search search = {
		.elf = elf, .section = section, .addend = addend, .types = &type, .nr_types = 1, .budget = budget
	};

	return find(&search, ret_relocation);
}
