/* SPDX-License-Identifier: Apache-2.0 */
/* spawn: starts the program that uses the library again, as a helper with its own task. Its main must call sonde_is_worker first. A main
 * that does not would repeat what made its parent start a helper, without end. So helpers carry a mark, and a process with the mark may not
 * start one. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define SPAWN_END_MS 100u /* the longest wait for a helper's end */
#define SPAWN_SOCKET 3 /* the helper's end of the socket pair; 0, 1 and 2 are /dev/null */

struct spawn_options {
	const char *program;
	char *const *argv; /* argv[0] selects the helper's task */
	char *const *envp; /* its environment, except the mark and LD_LIBRARY_PATH; NULL: empty */
	int socket_type;   /* as of socketpair(2) */
};

struct helper {
	pid_t pid;          /* 0: no helper */
	int pid_fd, socket; /* our end; close-on-exec */
};
#define HELPER_NONE { .pid_fd = -1, .socket = -1 }

/* 0; -ELOOP: this process is a helper itself; or another negative errno. */
MUST_CHECK int spawn_helper(const struct spawn_options *options, struct diag *diag, struct helper *ret_helper);
/* True if the helper has ended by itself, even if the program has reaped it by waiting for any child. */
bool spawn_has_ended(const struct helper *helper);
/* Kills the helper unless it has ended, and closes our descriptors; then *helper is HELPER_NONE. A helper that does not end within
 * SPAWN_END_MS, because the kernel waits for a file system, is left to a thread that reaps it. Returns the signal that ended it, ours or
 * another; 0: it exited, or that is not known. */
int spawn_end(struct helper *helper);
void spawn_leave(struct helper *helper); /* the same without waiting */
/* True if this process or one of its ancestors carries the mark. */
bool spawn_is_helper(void);
