/* SPDX-License-Identifier: Apache-2.0 */
/* kallsyms: the kernel's own list of its functions, including those of modules and BPF programs, read once in one pass. Immutable once
 * read; any thread may look up. The list has no sizes: a function ends where anything else begins (data, or section markers of the linker
 * script such as _etext), and at most KALLSYMS_MAX_FUNCTION_BYTES after its start. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define KALLSYMS_MAX_FUNCTION_BYTES ((uint64_t)256 << 10) /* the largest of Linux 6.18 takes 20 KiB */

struct kallsyms;
/* 0; -EACCES: all addresses are hidden (kptr_restrict), or the file is; -ENODATA: no functions in it; -ENOMEM; or the error of open or
 * read. */
MUST_CHECK int kallsyms_read(const char *path, struct kallsyms **ret_kallsyms);
/* The same from memory. 0, -EACCES, -ENODATA or -ENOMEM. */
MUST_CHECK int kallsyms_parse(const char *bytes, size_t size, struct kallsyms **ret_kallsyms);
void kallsyms_free(struct kallsyms *kallsyms); /* accepts NULL */
static inline void kallsyms_freep(struct kallsyms **kallsyms)
{
	kallsyms_free(*kallsyms);
}
/* Returns "name" or "name [module]", borrowed from the kallsyms. Among aliases always the same one: global before weak before local, then
 * the shorter, then the lesser. 0 or -ENOENT. */
MUST_CHECK int kallsyms_find(const struct kallsyms *kallsyms, uint64_t kaddr, const char **ret_name, uint64_t *ret_start);
/* Is it code that the kernel leaves out of a waiting thread's stack: functions of its scheduler, of the ways to sleep and of locks
 * (in_sched_functions of kernel/sched/core.c)? */
bool kallsyms_is_scheduler(const struct kallsyms *kallsyms, uint64_t kaddr);
uint32_t kallsyms_size(const struct kallsyms *kallsyms); /* entries: functions, and ends before gaps */
