/* SPDX-License-Identifier: Apache-2.0 */
/* minidebug: the small symbol table that Fedora and its derivatives leave in a stripped file: an xz-compressed ELF file in section
 * .gnu_debugdata (gdb's manual, "MiniDebugInfo"), with the functions that .dynsym lacks. Hostile input: sizes and memory are capped. */
#pragma once
#include "base/cleanup.h"
#include "elf/elf_file.h"

#define MINIDEBUG_MAX_PACKED_BYTES ((size_t)32 << 20)
#define MINIDEBUG_MAX_BYTES	   ((size_t)64 << 20) /* unpacked */
#define MINIDEBUG_MAX_MEMORY	   ((size_t)80 << 20) /* of the decoder: xz -9 needs 65 MiB */

struct minidebug {
	void *bytes;
	struct elf_file *elf; /* over the bytes */
};

/* 0; -ENODATA: the file has none; -EBADMSG; -EFBIG above a cap; -ENOEXEC: no ELF file inside; -ENOMEM. */
MUST_CHECK int minidebug_open(const struct elf_file *elf, struct diag *diag, struct minidebug *ret_minidebug);
void minidebug_done(struct minidebug *minidebug);
