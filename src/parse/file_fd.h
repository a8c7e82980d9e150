/* SPDX-License-Identifier: Apache-2.0 */
/* file_fd: what a worker gets of a file. */
#pragma once
#include "base/cleanup.h"
#include "elf/elf_file.h"

/* A descriptor of the file's bytes, for those that stand in memory only (the vdso) too; or a negative errno. *ret_own: to be closed; left
 * alone when it is the file's. */
MUST_CHECK int file_fd_of(const struct elf_file *elf, int *ret_own);
