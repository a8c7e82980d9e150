/* SPDX-License-Identifier: Apache-2.0 */
/* patience: runs what a file system may keep waiting for ever (FUSE, NFS) in a thread of its own, and gives it up after a time. Any thread may
 * call. A thread that was given up stays until its file system answers; when that has taken the request and never answers, the kernel keeps the thread, and with
 * it our process's end, until then. */
#pragma once
#include "base/cleanup.h"

/* Runs fn(arg). 0: it has come back. -ETIMEDOUT: given up; `arg` belongs to the thread, which gives it to free_fn should it come back. Other negative
 * errno: no thread could be started, and fn has not run. */
MUST_CHECK int patience_run(void (*fn)(void *arg), void (*free_fn)(void *arg), void *arg, unsigned int max_ms);
