/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_functions: the functions of the running kernel by name, those of modules included (/proc/kallsyms), and whether it lets them be
 * probed. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct kernel_function { /* borrowed for the call */
	const char *name, *module; /* module "": the kernel itself */
	uint64_t kaddr;		   /* 0: hidden from this user */
	bool is_forbidden;	   /* the kernel lets nothing be attached in it */
};

/* Calls fn for each until it returns something else than 0. Returns that, 0, or -errno of opening the list. */
typedef int (*kernel_function_fn)(void *arg, const struct kernel_function *function);
MUST_CHECK int kernel_functions_each(kernel_function_fn fn, void *arg);
/* *ret_kaddr: 0: hidden. False: there is none of this name. */
bool kernel_functions_find(const char *name, uint64_t *ret_kaddr);
/* By kprobe and kretprobe; by fentry and fexit. */
bool kernel_functions_have_kprobes(void);
bool kernel_functions_have_fentry(void);
