/* SPDX-License-Identifier: Apache-2.0 */
/* small_file: reads small files of /proc, /sys or tracefs. */
#pragma once
#include <fcntl.h>
#include <stddef.h>

#include "base/cleanup.h"

/* Reads up to room - 1 bytes, without newlines at the end. `dir_fd` as in openat(2). 0 or a negative errno. */
MUST_CHECK int small_file_read(int dir_fd, const char *path, char *text, size_t room);
