/* SPDX-License-Identifier: Apache-2.0 */
/* native_image: rows for what Graal's native-image compiled. Such code has no call frame information, no symbols, no frame pointers, keeps
 * no register across calls, and lies in one piece: functions behind each other, int3 between some of them, tables of jumps behind or among
 * the code. Each is read with code_frames; those that the code does not prove get no rows. Work is limited. */
#pragma once
#include "cfi/cfi.h"
#include "cfi/code_window.h"

bool native_image_is(const struct elf_file *elf);
/* The gaps are those of code_rows_walk. *ret_code: from the first to the last function that has rows; stays if there is none. 0; -ENOMEM,
 * or the error of `row`. */
MUST_CHECK int native_image_walk(const struct elf_file *elf, const struct code_gap *gaps, size_t nr_gaps, cfi_row_fn row, void *arg,
				 struct cfi_stats *stats, struct code_gap *ret_code);
