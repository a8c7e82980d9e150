/* SPDX-License-Identifier: Apache-2.0 */
/* greenlet_rows: unwind rules for the functions of Python's greenlet module that start and switch stacks. They copy pieces of stacks to and
 * from the heap. So the memory behind a greenlet's first frame is another greenlet's, often with intact frames: call frame information
 * leads into them, and nothing there shows it. Only knowledge of these functions helps. */
#pragma once
#include "cfi/cfi.h"

/* Gives rows like cfi_walk for a file that defines the module; for others none. 0; -ENOMEM; or the error of `row`. */
MUST_CHECK int greenlet_walk(const struct elf_file *elf, cfi_row_fn row, void *arg);
