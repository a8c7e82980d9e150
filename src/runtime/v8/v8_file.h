/* SPDX-License-Identifier: Apache-2.0 */
/* v8_file: the symbols of a file that contains V8, of .dynsym and .symtab together. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_file.h"

struct v8_symbol {
	const char *name; /* borrowed from the v8_file */
	uint64_t elf_vaddr;
};

struct v8_file {
	const struct elf_file *elf;
	struct v8_symbol *symbols; /* those that begin with "v8dbg_" or "_ZN2v88internal" or "v8_Default_", sorted by name */
	size_t nr, capacity;
	char *strings[2];
};

/* 0; -ENOENT: it has no symbol of V8's; -ENOMEM. Call v8_file_done in any case. */
MUST_CHECK int v8_file_read(const struct elf_file *elf, struct v8_file *ret_file);
void v8_file_done(struct v8_file *file);
/* The first symbol that begins with `prefix`, or NULL. */
const struct v8_symbol *v8_file_find(const struct v8_file *file, const char *prefix);
/* The value of the 32-bit constant whose symbol begins with `prefix`. 0 or -ENOENT. */
MUST_CHECK int v8_file_constant(const struct v8_file *file, const char *prefix, int32_t *ret_value);
