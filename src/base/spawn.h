/* SPDX-License-Identifier: Apache-2.0 */
/* spawn: starts the program that uses the library once more, as a helper with a task of its own. Its main has to ask sonde_is_worker first.
 * One that does not would do again what made its parent start a helper, and so on without end; so helpers carry a mark, and nobody who has
 * it may start one. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define SPAWN_END_MS 100u /* so long its end is waited for at most */
#define SPAWN_SOCKET 3 /* the helper's end of the socket pair; 0, 1 and 2 lead nowhere */

struct spawn_options {
	const char *program;
	char *const *argv; /* argv[0] tells the helper which one it is */
	char *const *envp; /* all of its environment but the mark and LD_LIBRARY_PATH; NULL: nothing */
	int socket_type;   /* as of socketpair(2) */
};

struct helper {
	pid_t pid;          /* 0: there is none */
	int pid_fd, socket; /* our end; close-on-exec */
};
#define HELPER_NONE { .pid_fd = -1, .socket = -1 }

/* 0; -ELOOP: this process is a helper itself; or another negative errno. */
MUST_CHECK int spawn_helper(const struct spawn_options *options, struct diag *diag, struct helper *ret_helper);
/* Has it ended by itself? Also where the program, waiting for any child, has seen that before us. */
bool spawn_has_ended(const struct helper *helper);
/* Ends it, if it has not ended, and closes what is ours; then there is none. One that does not end within SPAWN_END_MS, as the kernel waits
 * for a file system in its name, is left to a thread that reaps it. The signal that ended it, ours or another; 0: it has exited, or nobody
 * knows. */
int spawn_end(struct helper *helper);
void spawn_leave(struct helper *helper); /* the same, without waiting at all */
/* Does this process, or one that it comes from, carry the mark? */
bool spawn_is_helper(void);
