/* SPDX-License-Identifier: Apache-2.0 */
/* unwind_table: for every pc of one ELF file, the number of the rule that finds its caller: sorted rows, cut into the buckets
 * of abi/unwind.h. A bucket's last row may reach farther than 64 KiB: only the starts of rows span less. Built once per file, then
 * immutable; any thread may read. */
#pragma once
#include <stdint.h>

#include "abi/unwind.h"
#include "elf/elf_file.h"
#include "unwind/rule_table.h"

struct unwind_table {
	uint64_t base_vaddr; /* elf_vaddr of rel 0 */
	struct sonde_row *rows;
	struct sonde_bucket *buckets; /* nr_buckets + 1 entries; rows_pos counts from rows[0] here */
	uint32_t nr_rows, nr_buckets;
	uint32_t nr_unsupported, nr_bad_fdes;
};

/* From .eh_frame, and where that says nothing from .debug_frame. Borrows both for the call. Overlapping FDEs: the later in the section
 * loses. Equal neighbours are one row. 0; -ENODATA when the file has no CFI (or another machine's); -EBADMSG when it is damaged; -EFBIG
 * above 2^32 addresses or SONDE_MAX_BUCKETS. */
MUST_CHECK int unwind_table_build(const struct elf_file *elf, struct rule_table *rules, struct diag *diag, struct unwind_table **ret_table);
void unwind_table_free(struct unwind_table *table); /* takes NULL */
static inline void unwind_table_freep(struct unwind_table **table)
{
	unwind_table_free(*table);
}
/* The rule's number for an address: SONDE_RULE_NONE outside of all rows. The oracle for the kernel side's search. */
uint16_t unwind_table_find(const struct unwind_table *table, uint64_t elf_vaddr);
