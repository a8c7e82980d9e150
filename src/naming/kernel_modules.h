/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_modules: which modules the kernel has. Stateless, any thread. */
#pragma once
#include <stdint.h>

/* A hash of each module's name, size, state and address as `list` (/proc/modules) has them, and of its directory in `folder` (/sys/module),
 * which is another when it was loaded anew. How many use a module is left out: that changes all the time. 0: there are none, or they cannot
 * be read. */
uint64_t kernel_modules_hash(const char *list, const char *folder);
