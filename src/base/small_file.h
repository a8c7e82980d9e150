/* SPDX-License-Identifier: Apache-2.0 */
/* small_file: a setting or a fact of the kernel, in a small file of /proc, /sys or tracefs. */
#pragma once
#include <fcntl.h>
#include <stddef.h>

#include "base/cleanup.h"

/* Its text up to room - 1 bytes, no newline at the end. `dir_fd` as of openat(2). 0 or a negative errno. */
MUST_CHECK int small_file_read(int dir_fd, const char *path, char *text, size_t room);
