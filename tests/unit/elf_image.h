/* SPDX-License-Identifier: Apache-2.0 */
/* elf_image: bytes and small ELF files made by hand, for the tests of their readers. */
#pragma once
#include <assert.h>
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define IMAGE_MAX (1 << 20)

struct bytes {
	size_t size;
	uint8_t data[IMAGE_MAX];
};

static inline void put(struct bytes *to, const void *bytes, size_t size)
{
	assert(size <= IMAGE_MAX - to->size);
	memcpy(to->data + to->size, bytes, size);
	to->size += size;
}

static inline void put_u8(struct bytes *to, uint8_t value)
{
	put(to, &value, sizeof(value));
}

static inline void put_u32(struct bytes *to, uint32_t value)
{
	put(to, &value, sizeof(value));
}

static inline void put_u64(struct bytes *to, uint64_t value)
{
	put(to, &value, sizeof(value));
}

static inline void put_padding(struct bytes *to, size_t align)
{
	while (to->size % align)
		put_u8(to, 0);
}

/* Overwrites the length of the CFI entry that starts at `start`. */
static inline void close_entry(struct bytes *cfi, size_t start)
{
	uint32_t size = (uint32_t)(cfi->size - start - 4);

	memcpy(cfi->data + start, &size, sizeof(size));
}

/* Appends a CIE of .eh_frame as gcc writes it (augmentation zR, pcrel sdata4; CFA = rsp + 8, return address at CFA - 8). Returns its
 * offset. */
static inline size_t put_gcc_cie(struct bytes *cfi)
{
	static const uint8_t body[] = { 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1 };
	size_t start = cfi->size;

	put_u32(cfi, 0);
	put_u32(cfi, 0);
	put(cfi, body, sizeof(body));
	close_entry(cfi, start);
	return start;
}

/* Appends an FDE of such a CIE, in a section linked at section_vaddr. */
static inline void put_gcc_fde(struct bytes *cfi, uint64_t section_vaddr, size_t cie, uint64_t start_vaddr, uint32_t size,
			       const void *program, size_t program_size)
{
	size_t start = cfi->size;

	put_u32(cfi, 0);
	put_u32(cfi, (uint32_t)(cfi->size - cie));
	put_u32(cfi, (uint32_t)(start_vaddr - (section_vaddr + cfi->size)));
	put_u32(cfi, size);
	put_u8(cfi, 0);
	put(cfi, program, program_size);
	close_entry(cfi, start);
}

struct image_section {
	const char *name;
	uint32_t type;
	uint64_t vaddr;
	const void *bytes;
	size_t size;
};

/* Offsets in a file made by image_make. */
#define IMAGE_PHDRS_OFF	  sizeof(Elf64_Ehdr)
#define IMAGE_CONTENT_OFF 0x400

/* Makes an x86-64 shared object with these program headers (at most 15) and sections. The sections' contents follow each other from
 * IMAGE_CONTENT_OFF, each aligned to 16. Section 0 is the null section, the last one the name table. */
static inline void image_make(struct bytes *to, const Elf64_Phdr *phdrs, size_t nr_phdrs, const struct image_section *sections,
			      size_t nr_sections)
{
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phoff = IMAGE_PHDRS_OFF,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (Elf64_Half)nr_phdrs,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)(nr_sections + 2),
		.e_shstrndx = (Elf64_Half)(nr_sections + 1),
	};
	Elf64_Shdr table[16] = { 0 };
	char names[256] = "";
	size_t names_size = 1;

	assert(nr_sections <= 14 && nr_phdrs <= 15);
	memset(to->data, 0, IMAGE_CONTENT_OFF);
	to->size = IMAGE_CONTENT_OFF;
	for (size_t i = 0; i < nr_sections; i++) {
		size_t name_size = strlen(sections[i].name) + 1;

		table[i + 1] = (Elf64_Shdr){
			.sh_name = (Elf64_Word)names_size,
			.sh_type = sections[i].type,
			.sh_addr = sections[i].vaddr,
			.sh_offset = to->size,
			.sh_size = sections[i].size,
		};
		memcpy(names + names_size, sections[i].name, name_size);
		names_size += name_size;
		if (sections[i].type != SHT_NOBITS)
			put(to, sections[i].bytes, sections[i].size);
		put_padding(to, 16);
	}
	table[nr_sections + 1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = to->size, .sh_size = names_size };
	put(to, names, names_size);
	put_padding(to, 16);
	header.e_shoff = to->size;
	put(to, table, (nr_sections + 2) * sizeof(table[0]));
	memcpy(to->data, &header, sizeof(header));
	if (nr_phdrs)
		memcpy(to->data + IMAGE_PHDRS_OFF, phdrs, nr_phdrs * sizeof(*phdrs));
}
