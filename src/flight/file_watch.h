/* SPDX-License-Identifier: Apache-2.0 */
/* file_watch: a number that others write into a file, read once a second on a thread of its own: whoever has the file, or its file system,
 * may let us wait for ever, and nothing else of us waits with it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct file_watch;
/* Borrows nothing. */
MUST_CHECK int file_watch_start(const char *path, struct diag *diag, struct file_watch **ret_watch);
/* Has the file read again, and takes what was read since the last call. NULL: a number; else why there is none, which lives for ever. */
const char *file_watch_take(struct file_watch *watch, double *ret_value);
/* Takes NULL. A thread that hangs in the file is left alone: it ends with the process, or frees what it has. */
void file_watch_end(struct file_watch *watch);
