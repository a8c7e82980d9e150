/* SPDX-License-Identifier: Apache-2.0 */
/* file: whole files at paths that others may have made. */
#pragma once
#include <stddef.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* Opens a regular file for reading: what stands there is looked at before, as opening a device or a FIFO can do something, or wait. A
 * descriptor or a negative errno: -ENOEXEC when it is none. */
MUST_CHECK int file_open_regular(const char *path, struct stat *ret_stat);

/* All of it, whatever a single write takes. 0 or a negative errno. */
MUST_CHECK int file_write(int fd, const char *bytes, size_t size);
