/* SPDX-License-Identifier: Apache-2.0 */
/* plt_names: the stubs through which a file calls the functions of others. They have no symbols. A stub's target is given by the slot that
 * it jumps through, and that slot's relocation. x86-64 (.plt, .plt.sec, .plt.got, .iplt; GNU ld, gold, lld and mold) and arm64. Hostile
 * input: capped and checked. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"

struct plt_entry {
	uint64_t elf_vaddr;
	/* The function that chooses the target (IFUNC), when the target has no name here; else 0. */
	uint64_t resolver_vaddr;
	uint32_t size_bytes;
	/* Offset of the target's name in `strings`; without meaning when there is a resolver. */
	uint32_t name;
};

struct plt_names {
	struct buffer entries; /* of struct plt_entry */
	char *strings;	       /* ends in NUL; NULL: no entry has a name */
	size_t strings_size;
};

/* Is it the name of a section of stubs? */
bool plt_names_is_section(const char *name);
/* 0; -ENODATA when there are none; -EBADMSG; -EFBIG; -ENOMEM. */
MUST_CHECK int plt_names_read(const struct elf_file *elf, struct plt_names *ret_names);
void plt_names_done(struct plt_names *names);
