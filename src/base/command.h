/* SPDX-License-Identifier: Apache-2.0 */
/* command: the program behind `--`: forked first, so that its pid can be told to the kernel, and let go when sampling has begun. One
 * thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct command;
/* Forks; the child waits. `argv` is borrowed for the call. 0; -ENOMEM or what fork gave. */
MUST_CHECK int command_new(char *const *argv, struct diag *diag, struct command **ret_command);
/* Ends the child when it was never released; else lets it be. */
void command_free(struct command *command);
uint32_t command_tgid(const struct command *command); /* 0 of NULL */
const char *command_name(const struct command *command); /* its first word */
/* Lets it exec. 0, what exec gave (-ENOENT: there is no such program), or -EIO when it was killed before. */
MUST_CHECK int command_release(struct command *command, struct diag *diag);
/* What a shell exits with when that failed: 127 where there is no such program, else 126. */
int command_failure_code(int err);
/* True when it has ended by itself; *ret_status as of waitpid(2), 0 where SIGCHLD is ignored. */
bool command_ended(struct command *command, int *ret_status);
/* What a shell makes of a status: 128 and the signal's number, or what it exited with. */
int command_exit_code(int status);
/* Asks it to end, and waits a moment for it. False: it goes on. */
bool command_stop(struct command *command);
