/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_names: the names of the running kernel's functions. They are read at the first look-up, and again when the modules or BPF programs
 * have changed. One thread. */
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
/* If the modules or BPF programs have changed, drops the names; they are read again when needed. 0 or -ENOMEM. */
MUST_CHECK int kernel_names_refresh(struct kernel_names *names);
struct symbolizer *kernel_names_symbolizer(const struct kernel_names *names); /* borrowed until the next refresh */
bool kernel_names_know_programs(const struct kernel_names *names); /* does the kernel report any BPF programs? */
