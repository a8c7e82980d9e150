// SPDX-License-Identifier: Apache-2.0
#include "base/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define STOP_WAIT_MS 1000

struct command {
	pid_t pid;
	int go_fd;      /* closing it without a byte ends the child */
	int failure_fd; /* the child's errno, when exec failed; closed by exec */
	bool released, reaped, was_stopped;
	int status;
	char *name;
};

/* In the child: waits for the go, then executes the program. */
static void run_child(int go_fd, int failure_fd, char *const *argv)
{
	ssize_t got;
	char word;
	int err;

	do
		got = read(go_fd, &word, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(0);
	close(go_fd);
	execvp(argv[0], argv);
	err = errno;
	if (write(failure_fd, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

/* Repeats on EINTR: signals may interrupt the program that uses the library. */
static void wait_for(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Returns the errno of a failed exec; 0: it succeeded. */
static int read_failure(int fd)
{
	ssize_t got;
	int err = 0;

	do
		got = read(fd, &err, sizeof(err));
	while (got < 0 && errno == EINTR);
	return got == sizeof(err) ? err : 0;
}

static void command_freep(struct command **command)
{
	command_free(*command);
}

int command_new(char *const *argv, struct diag *diag, struct command **ret_command)
{
	CLEANUP(command_freep) struct command *command = calloc(1, sizeof(*command));
	int go[2] = { -1, -1 }, failure[2] = { -1, -1 };

	if (!command)
		return -ENOMEM;
	command->go_fd = command->failure_fd = -1;
	command->name = strdup(argv[0]);
	if (!command->name)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go)) /* no SIGPIPE when the child was killed, unlike a pipe */
		return diag_errno(diag, errno, "cannot start %s: %s", argv[0], strerror(errno));
	command->go_fd = go[1];
	if (pipe2(failure, O_CLOEXEC)) {
		close(go[0]);
		return diag_errno(diag, errno, "cannot start %s: %s", argv[0], strerror(errno));
	}
	command->failure_fd = failure[0];
	command->pid = fork();
	if (command->pid == 0) {
		close(go[1]);
		close(failure[0]);
		run_child(go[0], failure[1], argv);
	}
	close(go[0]);
	close(failure[1]);
	if (command->pid < 0)
		return diag_errno(diag, errno, "cannot start %s: %s", argv[0], strerror(errno));
	*ret_command = MOVE(command);
	return 0;
}

void command_free(struct command *command)
{
	if (!command)
		return;
	closep(&command->go_fd);
	closep(&command->failure_fd);
	if (command->pid > 0 && !command->released)
		wait_for(command->pid);
	free(command->name);
	free(command);
}

uint32_t command_tgid(const struct command *command)
{
	return command ? (uint32_t)command->pid : 0;
}

const char *command_name(const struct command *command)
{
	return command->name;
}

/* Waits for the end of a child that never executed the program. */
static void reap(struct command *command)
{
	wait_for(command->pid);
	command->reaped = command->was_stopped = true;
}

int command_release(struct command *command, struct diag *diag)
{
	int err;

	command->released = true;
	if (send(command->go_fd, "g", 1, MSG_NOSIGNAL) != 1) {
		reap(command);
		return diag_errno(diag, EIO, "%s ended before it began", command->name);
	}
	closep(&command->go_fd);
	command->go_fd = -1;
	err = read_failure(command->failure_fd);
	if (!err)
		return 0;
	reap(command);
	return diag_errno(diag, err, "cannot run %s: %s", command->name, strerror(err));
}

int command_failure_code(int err)
{
	return err == -ENOENT ? 127 : 126;
}

bool command_ended(struct command *command, int *ret_status)
{
	if (!command->reaped) {
		pid_t pid = waitpid(command->pid, &command->status, WNOHANG);

		/* ECHILD: our parent ignored SIGCHLD, so the kernel has discarded the status */
		command->reaped = pid == command->pid || (pid < 0 && errno == ECHILD);
	}
	if (!command->reaped || command->was_stopped)
		return false;
	*ret_status = command->status;
	return true;
}

int command_exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool command_stop(struct command *command)
{
	int status;

	if (command_ended(command, &status) || command->reaped)
		return true;
	command->was_stopped = true;
	kill(command->pid, SIGTERM);
	for (int ms = 0; ms < STOP_WAIT_MS && !command->reaped; ms += 10) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		command->reaped = waitpid(command->pid, &status, WNOHANG) == command->pid;
	}
	return command->reaped;
}
