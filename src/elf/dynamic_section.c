// SPDX-License-Identifier: Apache-2.0
#include "elf/dynamic_section.h"

#include <errno.h>
#include <string.h>


#define MAX_PHDRS 4096u /* more than elf_open.c accepts */
#define MAX_ENTRIES 4096u
#define ENTRIES_AT_ONCE 32u

static int find_segment(const struct elf_file *elf, Elf64_Phdr *ret_segment)
{
	Elf64_Ehdr header;
	int err = elf_file_read_at(elf, 0, &header, sizeof(header));

	if (err)
		return err;
	if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > MAX_PHDRS)
		return header.e_phnum ? -EBADMSG : -ENOENT;
	for (uint32_t i = 0; i < header.e_phnum; i++) {
		err = elf_file_read_at(elf, header.e_phoff + i * sizeof(*ret_segment), ret_segment, sizeof(*ret_segment));
		if (err || ret_segment->p_type == PT_DYNAMIC)
			return err;
	}
	return -ENOENT;
}

static void take_entry(struct dynamic_section *section, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		section->symbols = entry->d_un.d_ptr;
		break;
	case DT_STRTAB:
		section->strings = entry->d_un.d_ptr;
		break;
	case DT_STRSZ:
		section->strings_bytes = entry->d_un.d_val;
		break;
	case DT_GNU_HASH:
		section->gnu_hash = entry->d_un.d_ptr;
		break;
	case DT_HASH:
		section->hash = entry->d_un.d_ptr;
		break;
	case DT_RELA:
		section->relocations = entry->d_un.d_ptr;
		break;
	case DT_RELASZ:
		section->relocations_bytes = entry->d_un.d_val;
		break;
	case DT_RELACOUNT:
		section->nr_relative = entry->d_un.d_val;
		break;
	case DT_JMPREL:
		section->plt_relocations = entry->d_un.d_ptr;
		break;
	case DT_FLAGS_1:
		section->flags_1 = entry->d_un.d_val;
		break;
	case DT_PLTRELSZ:
		section->plt_relocations_bytes = entry->d_un.d_val;
		break;
	}
}

static int read_entries(const struct elf_file *elf, const Elf64_Phdr *segment, struct dynamic_section *section)
{
	uint64_t nr = segment->p_filesz / sizeof(Elf64_Dyn);

	if (nr > MAX_ENTRIES)
		nr = MAX_ENTRIES;
	for (uint64_t first = 0; first < nr; first += ENTRIES_AT_ONCE) {
		uint64_t nr_now = nr - first < ENTRIES_AT_ONCE ? nr - first : ENTRIES_AT_ONCE;
		Elf64_Dyn entries[ENTRIES_AT_ONCE];
		int err = elf_file_read_at(elf, segment->p_offset + first * sizeof(entries[0]), entries, nr_now * sizeof(entries[0]));

		if (err)
			return err;
		for (uint64_t i = 0; i < nr_now; i++) {
			if (entries[i].d_tag == DT_NULL)
				return 0;
			take_entry(section, &entries[i]);
		}
	}
	return 0;
}

int dynamic_section_read(const struct elf_file *elf, struct dynamic_section *ret_section)
{
	struct dynamic_section section = { 0 };
	Elf64_Phdr segment;
	int err = find_segment(elf, &segment);

	if (!err)
		err = read_entries(elf, &segment, &section);
	if (err)
		return err;
	if (!section.symbols || !section.strings)
		return -ENOENT;
	*ret_section = section;
	return 0;
}

int dynamic_section_symbol(const struct elf_file *elf, const struct dynamic_section *section, uint64_t i, Elf64_Sym *ret_symbol)
{
	if (i > UINT32_MAX) /* ELF allows no more */
		return -EBADMSG;
	return elf_file_read_vaddr(elf, section->symbols + i * sizeof(*ret_symbol), ret_symbol, sizeof(*ret_symbol)) ? -EBADMSG : 0;
}

int dynamic_section_name(const struct elf_file *elf, const struct dynamic_section *section, uint32_t at, char *to)
{
	uint64_t size = DYNAMIC_MAX_NAME;

	if (at >= section->strings_bytes)
		return -EBADMSG;
	if (size > section->strings_bytes - at)
		size = section->strings_bytes - at;
	if (elf_file_read_vaddr(elf, section->strings + at, to, size) || !memchr(to, '\0', size))
		return -EBADMSG;
	return 0;
}

int dynamic_section_is_name(const struct elf_file *elf, const struct dynamic_section *section, uint32_t at, const char *name)
{
	size_t size = strlen(name) + 1;
	char found[DYNAMIC_MAX_NAME];

	if (at >= section->strings_bytes)
		return -EBADMSG;
	if (size > sizeof(found) || size > section->strings_bytes - at)
		return 0;
	if (elf_file_read_vaddr(elf, section->strings + at, found, size))
		return -EBADMSG;
	return !memcmp(found, name, size);
}
