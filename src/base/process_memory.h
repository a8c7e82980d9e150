/* SPDX-License-Identifier: Apache-2.0 */
/* process_memory: reads another process's memory without stopping it, including pages that it may not read itself (PROT_NONE). Any
 * thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* Opens the process's current memory. After an exec the process has other memory, but the descriptor keeps the old one. -ESRCH: the process
 * has ended; -EFAULT: no permission; or another negative errno. */
MUST_CHECK int process_memory_open(uint32_t tgid);
/* Reads all bytes. 0; -ESRCH: that memory no longer exists; -EFAULT: a part is not mapped. */
MUST_CHECK int process_memory_read(int fd, uint64_t from, void *to, size_t size);
/* Reads up to the first page that is not mapped. Returns the number of bytes. */
size_t process_memory_read_some(int fd, uint64_t from, void *to, size_t size);
