/* SPDX-License-Identifier: Apache-2.0 */
/* regular_file: opens a file whose place others can write to. What stands there is looked at before it is opened for
 * reading, as opening alone sets off some devices (a watchdog, a tape) and waits for a writer at a FIFO. */
#pragma once
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* A file descriptor; -ENOEXEC when it is no regular file (a symbolic link is followed); -EFBIG above max_bytes; or what open
 * gave. */
MUST_CHECK int regular_file_open(const char *path, uint64_t max_bytes);
/* The same in the tree under `root_fd` as its processes see it: links (also absolute ones and ..) lead nowhere outside, and the file
 * itself may not be a link. `ret_stat` is set on success. */
MUST_CHECK int regular_file_open_in(int root_fd, const char *path, uint64_t max_bytes, struct stat *ret_stat);
