/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_section: what a file tells the dynamic linker (gABI chapter 5), found by the program header, so that it works without section
 * headers. Hostile input: capped and checked. */
#pragma once
#include <elf.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

#define DYNAMIC_MAX_NAME 256 /* bytes with the NUL: no name that we look for is longer */

struct dynamic_section { /* addresses as linked; 0: the file has none */
	uint64_t symbols, strings, strings_bytes;
	uint64_t gnu_hash, hash;
	uint64_t relocations, relocations_bytes, nr_relative; /* DT_RELA; the first nr_relative have no symbol */
	uint64_t plt_relocations, plt_relocations_bytes;
	uint64_t flags_1; /* DF_1_PIE, ... */
};

/* 0; -ENOENT: no dynamic section, or it has no symbols; -EBADMSG. */
MUST_CHECK int dynamic_section_read(const struct elf_file *elf, struct dynamic_section *ret_section);
/* Reads symbol number i, checked only against the file's bytes. 0 or -EBADMSG. */
MUST_CHECK int dynamic_section_symbol(const struct elf_file *elf, const struct dynamic_section *section, uint64_t i, Elf64_Sym *ret_symbol);
/* Reads the name at an offset in the strings; `to` holds DYNAMIC_MAX_NAME. 0; -EBADMSG: outside, or longer. */
MUST_CHECK int dynamic_section_name(const struct elf_file *elf, const struct dynamic_section *section, uint32_t at, char *to);
/* 1: the name at that offset is `name`; 0: another; -EBADMSG. */
MUST_CHECK int dynamic_section_is_name(const struct elf_file *elf, const struct dynamic_section *section, uint32_t at, const char *name);
