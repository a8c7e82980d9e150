/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_value: the address of one symbol of any type. For a single look-up: reads the whole .symtab. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

/* Finds the first of that name in .symtab. 0; -ENODATA: no .symtab; -ENOENT: no such symbol; or as elf_file_read_section. */
MUST_CHECK int symbol_value(const struct elf_file *elf, const char *name, struct diag *diag, uint64_t *ret_elf_vaddr);
