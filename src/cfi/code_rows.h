/* SPDX-License-Identifier: Apache-2.0 */
/* code_rows: rows for x86-64 functions without call frame information, read off their code (code_frames): hand-written assembly, a C
 * library built without. Only what is proved: the function returns, or it is exported, or one that is proved calls it; and the program's
 * start, which nobody called. */
#pragma once
#include "cfi/cfi.h"

struct code_gap { /* code without rows */
	uint64_t start_vaddr, end_vaddr;
};

/* The gaps are sorted. As cfi_walk; functions may overlap, and have rows for a part of their code. Work is bounded: what is beyond has
 * none. 0; -ENOMEM, or what `row` gave. */
MUST_CHECK int code_rows_walk(const struct elf_file *elf, const struct code_gap *gaps, size_t nr_gaps, cfi_row_fn row, void *arg,
			      struct cfi_stats *ret_stats);
