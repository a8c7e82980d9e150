/* SPDX-License-Identifier: Apache-2.0 */
/* process_memory: what another process has in its memory, read without stopping it; also what it may not read itself (PROT_NONE). Any
 * thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* A descriptor of the memory that it has now: when it executes a program it has another, and what was opened stays that of before. -ESRCH:
 * the process has ended; -EFAULT: it is not ours to read; or another negative errno. */
MUST_CHECK int process_memory_open(uint32_t tgid);
/* All of it. 0; -ESRCH: that memory is no more; -EFAULT: not all of it is there. */
MUST_CHECK int process_memory_read(int fd, uint64_t from, void *to, size_t size);
/* Up to the first page that is not there: how many bytes. */
size_t process_memory_read_some(int fd, uint64_t from, void *to, size_t size);
