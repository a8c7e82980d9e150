/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_modules: detects changes in the kernel's loaded modules. Stateless, any thread. */
#pragma once
#include <stdint.h>

/* Returns a hash of each module's name, size, state and address in `list` (/proc/modules), and of its directory in `folder` (/sys/module),
 * which changes when the module is loaded again. Leaves out the module's users, which change all the time. 0: there are no modules, or they
 * cannot be read. */
uint64_t kernel_modules_hash(const char *list, const char *folder);
