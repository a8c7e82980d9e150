/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_lines: the vmlinux with debug info of the kernel that runs, where its source lines and inlined functions are looked up. Only one
 * whose build id is that of /sys/kernel/notes; and moved to where the kernel really is (KASLR). Modules have none. One thread. */
#pragma once
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "parse/parser.h"

struct kernel_lines;
/* `path` NULL: where perf looks, too. 0; -ENOENT: there is none, without a text; else `diag` says why it is not used. */
MUST_CHECK int kernel_lines_open(const char *path, struct diag *diag, struct kernel_lines **ret_lines);
void kernel_lines_free(struct kernel_lines *lines); /* takes NULL */
static inline void kernel_lines_freep(struct kernel_lines **lines)
{
	kernel_lines_free(*lines);
}
const char *kernel_lines_path(const struct kernel_lines *lines);

/* Where a function that stands at `elf_vaddr` in the file is in the kernel. */
uint64_t kernel_lines_kaddr(const struct kernel_lines *lines, uint64_t elf_vaddr);
/* As parser_names, for addresses in the kernel. The starts in the answers are those in the file. */
MUST_CHECK int kernel_lines_ask(const struct kernel_lines *lines, struct parser *parser, const uint64_t *kaddrs, uint32_t nr,
				worker_open_fn open, void *open_arg, struct diag *diag, struct buffer *answers);
