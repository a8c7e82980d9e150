/* SPDX-License-Identifier: Apache-2.0 */
/* command: the program behind `--`. It is forked first, so that the kernel side knows its pid, and released when sampling has begun. One
 * thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct command;
/* Forks; the child waits. `argv` is borrowed for the call. 0; -ENOMEM or the error of fork. */
MUST_CHECK int command_new(char *const *argv, struct diag *diag, struct command **ret_command);
/* Ends the child if it was not released; else leaves it running. */
void command_free(struct command *command);
uint32_t command_tgid(const struct command *command); /* 0 for NULL */
const char *command_name(const struct command *command); /* argv[0] */
/* Lets the child exec. 0; the error of exec (-ENOENT: no such program); -EIO: it was killed before. */
MUST_CHECK int command_release(struct command *command, struct diag *diag);
/* The exit code of a shell for such a failure: 127 if there is no such program, else 126. */
int command_failure_code(int err);
/* True if the program has ended by itself. *ret_status is as of waitpid(2), 0 where SIGCHLD is ignored. */
bool command_ended(struct command *command, int *ret_status);
/* The exit code of a shell for that status: 128 plus the signal's number, or the program's own exit code. */
int command_exit_code(int status);
/* Sends SIGTERM and waits a second at most. False: it is still running. */
bool command_stop(struct command *command);
