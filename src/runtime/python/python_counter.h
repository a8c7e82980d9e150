/* SPDX-License-Identifier: Apache-2.0 */
/* python_counter: finds the counter from which CPython 3.13 and newer number their code objects. */
#pragma once
#include "base/cleanup.h"
#include "elf/elf_file.h"

/* Returns its offset in PyInterpreterState (func_state.next_version); 0: not found. `code_version` is the offset of co_version in a code
 * object. */
uint32_t python_counter_find(const struct elf_file *elf, uint32_t code_version);
