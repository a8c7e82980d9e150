/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_lines: looks up source lines and inlined functions of the running kernel in its vmlinux with debug info. The file's build id must
 * be that of /sys/kernel/notes. Addresses are shifted to where the kernel really is (KASLR). Does not cover modules. One thread. */
#pragma once
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "parse/parser.h"

struct kernel_lines;
/* `path` NULL: searches where perf does; if there is no file, -ENOENT and `diag` stays empty. Otherwise 0, or `diag` says why the file is
 * not used. */
MUST_CHECK int kernel_lines_open(const char *path, struct diag *diag, struct kernel_lines **ret_lines);
void kernel_lines_free(struct kernel_lines *lines); /* takes NULL */
static inline void kernel_lines_freep(struct kernel_lines **lines)
{
	kernel_lines_free(*lines);
}
const char *kernel_lines_path(const struct kernel_lines *lines);

/* Returns the kernel address of a function at `elf_vaddr` in the file. */
uint64_t kernel_lines_kaddr(const struct kernel_lines *lines, uint64_t elf_vaddr);
/* As parser_names, for kernel addresses. The starts in the answers are addresses in the file. */
MUST_CHECK int kernel_lines_ask(const struct kernel_lines *lines, struct parser *parser, const uint64_t *kaddrs, uint32_t nr,
				worker_open_fn open, void *open_arg, struct diag *diag, struct buffer *answers);
