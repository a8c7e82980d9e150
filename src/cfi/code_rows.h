/* SPDX-License-Identifier: Apache-2.0 */
/* code_rows: rows for x86-64 functions without call frame information, derived from their code (code_frames): hand-written assembly, a C
 * library built without it. Only for proved functions: they return, are exported, or are called by a proved one. Also for the program's
 * start, which has no caller. */
#pragma once
#include "cfi/cfi.h"
#include "cfi/code_window.h"

/* The gaps are sorted. Like cfi_walk; functions may overlap, and may have rows for only a part of their code. Work is limited: functions
 * beyond the limit get no rows. 0; -ENOMEM, or the error of `row`. */
MUST_CHECK int code_rows_walk(const struct elf_file *elf, const struct code_gap *gaps, size_t nr_gaps, cfi_row_fn row, void *arg,
			      struct cfi_stats *ret_stats);
