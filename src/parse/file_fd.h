/* SPDX-License-Identifier: Apache-2.0 */
/* file_fd: the descriptor that a worker gets for a file. */
#pragma once
#include "base/cleanup.h"
#include "elf/elf_file.h"

/* A descriptor of the file's bytes, also for files in memory (the vdso); or a negative errno. *ret_own: to be closed; unchanged if the
 * descriptor is the file's. */
MUST_CHECK int file_fd_of(const struct elf_file *elf, int *ret_own);
