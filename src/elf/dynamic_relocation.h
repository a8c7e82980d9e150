/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_relocation: what the dynamic linker writes into a slot of a file (gABI chapter 4 "Relocation", with addends as x86-64 and arm64
 * have them). Hostile input: capped. */
#pragma once
#include "elf/dynamic_section.h"

struct dynamic_relocation {
	uint64_t slot; /* elf_vaddr */
	int64_t addend;
	uint32_t type;		     /* R_X86_64_... */
	uint32_t symbol;	     /* 0: none */
	uint64_t symbol_elf_vaddr;   /* 0: the file itself does not define it */
	char name[DYNAMIC_MAX_NAME]; /* "": none */
};

/* Relocations that may still be read. Whoever searches an untrusted file repeatedly keeps one budget for all searches, so that they end. */
#define DYNAMIC_RELOCATION_BUDGET (1u << 22)

/* 0; -ENOENT: nothing is written to that slot; -EBADMSG; -EFBIG: the budget is used up. */
MUST_CHECK int dynamic_relocation_find(const struct elf_file *elf, const struct dynamic_section *section, uint64_t slot, uint32_t *budget,
				       struct dynamic_relocation *ret_relocation);
/* Finds the first relocation of one of these types against symbol `name`. Same results. */
MUST_CHECK int dynamic_relocation_find_symbol(const struct elf_file *elf, const struct dynamic_section *section, const char *name,
					      const uint32_t *types, uint32_t nr_types, uint32_t *budget,
					      struct dynamic_relocation *ret_relocation);
/* Finds the first relocation of that type against no symbol; with an `addend`, only against this one. Same results. */
MUST_CHECK int dynamic_relocation_find_bare(const struct elf_file *elf, const struct dynamic_section *section, uint32_t type,
					    const int64_t *addend, uint32_t *budget, struct dynamic_relocation *ret_relocation);
