/* SPDX-License-Identifier: Apache-2.0 */
/* opening: the owner's answer when a worker wants to open a file (seccomp_unotify(2), Linux 5.9 for the descriptor). */
#pragma once
/* A path that the worker wants to read: a descriptor, which is then closed here, or a negative errno. */
typedef int (*worker_open_fn)(void *arg, const char *path);

/* Answers what is asked at the descriptor, if it still is. Only for reading, and only what `open` gives; NULL: nothing. */
void opening_answer(int asked_fd, worker_open_fn open, void *arg);
