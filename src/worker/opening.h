/* SPDX-License-Identifier: Apache-2.0 */
/* opening: the owner's side of a worker's open(2) calls (seccomp_unotify(2); Linux 5.9 to pass a descriptor). */
#pragma once
/* Opens a path for the worker. Returns a descriptor, which the caller closes, or a negative errno. */
typedef int (*worker_open_fn)(void *arg, const char *path);

/* Answers the pending call at the descriptor, if there still is one. Opens for reading only, and only what `open` allows; NULL: nothing. */
void opening_answer(int asked_fd, worker_open_fn open, void *arg);
