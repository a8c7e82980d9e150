/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_symbol: finds one exported symbol by name, in the file's hash table (DT_GNU_HASH, DT_HASH). That takes a handful of reads;
 * reading all symbols of a file takes milliseconds. Layouts: gABI chapter 5; GNU hash sections as binutils write them. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

struct dynamic_symbol {
	uint64_t elf_vaddr, size_bytes;
	uint8_t type; /* STT_FUNC, STT_OBJECT, STT_TLS, ... */
};

/* Ignores symbol versions: takes the first that is defined. 0; -ENOENT: the file does not define it; -EBADMSG. */
MUST_CHECK int dynamic_symbol_find(const struct elf_file *elf, const char *name, struct dynamic_symbol *ret_symbol);
