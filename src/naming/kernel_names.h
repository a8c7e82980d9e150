/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_names: the names of the running kernel's functions, read when they are asked for first, and again when its modules or BPF programs
 * have changed since. One thread. */
#pragma once
#include "base/cleanup.h"
#include "symbolize/symbolizer.h"

struct kernel_names;
/* NULL: no memory. */
struct kernel_names *kernel_names_new(void);
void kernel_names_free(struct kernel_names *names); /* takes NULL */
static inline void kernel_names_freep(struct kernel_names **names)
{
	kernel_names_free(*names);
}
/* Looks whether they have changed. 0 or -ENOMEM. */
MUST_CHECK int kernel_names_refresh(struct kernel_names *names);
struct symbolizer *kernel_names_symbolizer(const struct kernel_names *names); /* borrowed until the next refresh */
bool kernel_names_know_programs(const struct kernel_names *names); /* does the kernel tell where BPF programs are? */
