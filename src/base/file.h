/* SPDX-License-Identifier: Apache-2.0 */
/* file: whole files, at paths that others may have created. */
#pragma once
#include <stddef.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* Opens a regular file for reading. Checks the type first, as opening a device or FIFO may have effects or block. Returns a descriptor or a
 * negative errno; -ENOEXEC: not a regular file. */
MUST_CHECK int file_open_regular(const char *path, struct stat *ret_stat);

/* Writes all bytes, in as many writes as it takes. 0 or a negative errno. */
MUST_CHECK int file_write(int fd, const char *bytes, size_t size);
