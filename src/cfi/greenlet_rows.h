/* SPDX-License-Identifier: Apache-2.0 */
/* greenlet_rows: unwind rules for the functions of Python's greenlet module that begin and switch stacks. They copy pieces of stacks to and
 * from the heap, so what stands in memory behind the frame that began a greenlet is another greenlet's, often even frames that are intact:
 * call frame information leads into them, and nothing there tells. Only who knows these functions does. */
#pragma once
#include "cfi/cfi.h"

/* Gives rows as cfi_walk does, for a file that defines the module; for others none. 0; -ENOMEM; or what `row` gave. */
MUST_CHECK int greenlet_walk(const struct elf_file *elf, cfi_row_fn row, void *arg);
