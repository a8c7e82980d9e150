/* SPDX-License-Identifier: Apache-2.0 */
/* process_memory: what another process has in its memory, read without stopping it. Any thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* All of it. 0; -ESRCH: the process has ended; -EFAULT: not all of it is there, or it is not ours to read. */
MUST_CHECK int process_memory_read(uint32_t tgid, uint64_t from, void *to, size_t size);
/* Page by page, up to the first that is not there: how many bytes. */
size_t process_memory_read_some(uint32_t tgid, uint64_t from, void *to, size_t size);
