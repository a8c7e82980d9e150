/* SPDX-License-Identifier: Apache-2.0 */
/* fde_index: where the functions of a file begin and end, also those without a symbol, by PT_GNU_EH_FRAME (LSB core, "Exception
 * Frames"). */
#pragma once
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

struct fde_entry {
	int32_t pc, fde; /* relative to the header */
};

struct fde_index { /* the table of PT_GNU_EH_FRAME, sorted */
	uint64_t vaddr;
	uint32_t nr;
	struct fde_entry *entries; /* owned; fde_index_done frees it */
};

/* 0; -ENOENT: the file has none that we read; -ENOMEM. */
MUST_CHECK int fde_index_read(const struct elf_file *elf, struct fde_index *ret_index);
static inline void fde_index_done(struct fde_index *index)
{
	free(index->entries);
}
uint64_t fde_index_pc(const struct fde_index *index, uint32_t i); /* where the function begins */
/* The last entry that starts at or before pc; nr: none. */
uint32_t fde_index_find(const struct fde_index *index, uint64_t pc);
/* Where the function of an entry ends. 0 or -EBADMSG. */
MUST_CHECK int fde_index_end(const struct elf_file *elf, const struct fde_index *index, uint32_t i, uint64_t *ret_end);
