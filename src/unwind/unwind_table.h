/* SPDX-License-Identifier: Apache-2.0 */
/* unwind_table: for every pc of one ELF file, the number of the rule that finds its caller: sorted rows in the blocks of abi/unwind.h.
 * Holds references to the rules in its rows. Built once per file, then immutable; any thread may read. */
#pragma once
#include <stdint.h>

#include "abi/unwind.h"
#include "elf/elf_file.h"
#include "unwind/rule_table.h"

struct unwind_table {
	/* elf_vaddr of rel 0, at a block's start. The first row is there; the last row is where the file's rows end. */
	uint64_t base_vaddr;
	struct sonde_row *rows;
	uint32_t *blocks;             /* nr_blocks + 1 entries: the first row that starts in the block or after it */
	uint32_t nr_rows, nr_blocks, block_shift;
	struct rule_table *rules;     /* borrowed for the table's life; NULL: it holds no references */
	uint32_t nr_unsupported, nr_bad_fdes;
	/* Rules that the file needs; those above RULE_TABLE_MAX_OF_FILE are not supported. 0: not counted (unwind_table_build). */
	uint32_t nr_rules;
};

/* Borrows `elf` for the call, the rules for the table's life. Where FDEs overlap, the earlier one in the section wins. Equal neighbours
 * become one row. 0; -ENODATA: the file has no CFI (or another machine's); -EBADMSG: it is damaged; -EFBIG: its addresses need more than
 * SONDE_MAX_BLOCKS of the largest blocks, 2 GiB. */
MUST_CHECK int unwind_table_build(const struct elf_file *elf, struct rule_table *rules, struct diag *diag, struct unwind_table **ret_table);
/* The same for files of any machine, EM_X86_64 or EM_AARCH64. */
MUST_CHECK int unwind_table_build_for(uint16_t machine, const struct elf_file *elf, struct rule_table *rules, struct diag *diag,
				      struct unwind_table **ret_table);
void unwind_table_free(struct unwind_table *table); /* takes NULL */
static inline void unwind_table_freep(struct unwind_table **table)
{
	unwind_table_free(*table);
}
/* The number of the rule for an address; SONDE_RULE_NONE outside of all rows. Reference implementation for the kernel side's search. */
uint16_t unwind_table_find(const struct unwind_table *table, uint64_t elf_vaddr);
