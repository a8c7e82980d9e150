// SPDX-License-Identifier: Apache-2.0
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/hold_signals.h"

#define MARK "SONDE_HELPER"
#define REAPER_STACK_BYTES ((size_t)64 << 10)

static bool is_mark(const char *variable)
{
	return !strncmp(variable, MARK "=", sizeof(MARK));
}

bool spawn_is_helper(void)
{
	CLEANUP(fclosep) FILE *file = NULL;
	CLEANUP(freep) char *variable = NULL;
	size_t room = 0;
	bool found = getenv(MARK) != NULL;

	if (found)
		return true;
	file = fopen("/proc/self/environ", "re"); /* as at the start: main may have cleared it */
	while (file && !found && getdelim(&variable, &room, '\0', file) > 0)
		found = is_mark(variable);
	return found;
}

/* `libraries`: LD_LIBRARY_PATH, or NULL. */
static char **environment_of(char *const *envp, char *libraries)
{
	size_t nr = 0;
	char **marked;

	while (envp && envp[nr])
		nr++;
	marked = calloc(nr + 3, sizeof(*marked));
	if (!marked)
		return NULL;
	for (size_t i = 0; i < nr; i++)
		marked[i] = envp[i];
	marked[nr] = MARK "=1";
	marked[nr + 1] = libraries;
	return marked;
}

/* Blocks all signals. Ctrl-C, a hangup or a supervisor signals all processes of the program, but its helpers still have to resolve names
 * for the report, and end when it does. */
static int set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t all;
	int err;

	sigfillset(&all);
	err = posix_spawnattr_setsigmask(attributes, &all);
	return err ? err : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK);
}

static int set_actions(posix_spawn_file_actions_t *actions, int socket)
{
	int err = 0;

	for (int fd = 0; !err && fd < SPAWN_SOCKET; fd++)
		err = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
	return err ? err : posix_spawn_file_actions_adddup2(actions, socket, SPAWN_SOCKET);
}

static int spawn(const struct spawn_options *options, int socket, pid_t *ret_pid)
{
	const char *path = secure_getenv("LD_LIBRARY_PATH"); /* may be needed to find the program's libraries, and us */
	CLEANUP(freep) char *libraries = NULL;
	CLEANUP(freep) char **envp = NULL;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int err;

	if (path && asprintf(&libraries, "LD_LIBRARY_PATH=%s", path) < 0)
		return ENOMEM;
	envp = environment_of(options->envp, libraries);
	err = envp ? posix_spawn_file_actions_init(&actions) : ENOMEM;
	if (err)
		return err;
	err = posix_spawnattr_init(&attributes);
	if (!err) {
		err = set_actions(&actions, socket) ?: set_attributes(&attributes) ?:
			posix_spawn(ret_pid, options->program, &actions, &attributes, options->argv, envp);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

/* Moves the descriptor above SPAWN_SOCKET: dup2 onto itself would keep it close-on-exec, and lower numbers are replaced by then. */
static int move_up(int *fd)
{
	int moved;

	if (*fd > SPAWN_SOCKET)
		return 0;
	moved = fcntl(*fd, F_DUPFD_CLOEXEC, SPAWN_SOCKET + 1);
	if (moved < 0)
		return errno;
	close(*fd);
	*fd = moved;
	return 0;
}

/* Opens a pidfd. The pid alone is not safe: the program may reap our helper by waiting for any child, and the pid may be reused. */
static int hold(struct helper *helper)
{
	int err;

	helper->pid_fd = (int)syscall(SYS_pidfd_open, helper->pid, 0);
	if (helper->pid_fd >= 0)
		return 0;
	err = errno;
	kill(helper->pid, SIGKILL);
	waitpid(helper->pid, NULL, 0);
	return err;
}

int spawn_helper(const struct spawn_options *options, struct diag *diag, struct helper *ret_helper)
{
	CLEANUP(closep) int theirs = -1;
	struct helper helper = HELPER_NONE;
	int pair[2], err;

	if (spawn_is_helper())
		return diag_errno(diag, ELOOP,
				  "this process is a helper of sonde (" MARK
				  " is set) and may start none: main must ask sonde_is_worker first, and return its code when it says so");
	if (socketpair(AF_UNIX, options->socket_type | SOCK_CLOEXEC, 0, pair))
		return diag_errno(diag, errno, "a socket cannot be made: %s", strerror(errno));
	helper.socket = pair[0];
	theirs = pair[1];
	err = move_up(&theirs);
	if (!err)
		err = spawn(options, theirs, &helper.pid);
	if (!err)
		err = hold(&helper);
	if (err) {
		close(helper.socket);
		return diag_errno(diag, err, "%s cannot be started from %s: %s", options->argv[0], options->program, strerror(err));
	}
	*ret_helper = helper;
	return 0;
}

bool spawn_has_ended(const struct helper *helper)
{
	siginfo_t info = { 0 };

	return waitid(P_PIDFD, (id_t)helper->pid_fd, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

/* Returns true if it has ended, and reaps it. */
static bool try_to_reap(int pid_fd, siginfo_t *ret_info)
{
	*ret_info = (siginfo_t){ 0 };
	return waitid(P_PIDFD, (id_t)pid_fd, ret_info, WEXITED | WNOHANG) || ret_info->si_pid;
}

static void *reap(void *arg)
{
	int pid_fd = (int)(intptr_t)arg;
	siginfo_t info;

	while (waitid(P_PIDFD, (id_t)pid_fd, &info, WEXITED) && errno == EINTR)
		;
	close(pid_fd);
	return NULL;
}

/* Leaves the reaping to a thread, whenever the helper ends. Neither we nor our process's exit waits for it, and no zombie remains. If the
 * thread cannot be started, the zombie remains until we end. */
static void leave_to_reaper(int pid_fd)
{
	HOLD_SIGNALS(); /* signals are for the program's own threads */
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, REAPER_STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, reap, (void *)(intptr_t)pid_fd))
		close(pid_fd);
	pthread_attr_destroy(&attr);
}

static int end_within(struct helper *helper, uint64_t max_ns)
{
	uint64_t end_ns = clock_ns() + max_ns, now;
	siginfo_t info;
	bool is_reaped;

	if (!helper->pid)
		return 0;
	close(helper->socket);
	syscall(SYS_pidfd_send_signal, helper->pid_fd, SIGKILL, NULL, 0);
	while (!(is_reaped = try_to_reap(helper->pid_fd, &info)) && (now = clock_ns()) < end_ns) {
		struct pollfd wait = { .fd = helper->pid_fd, .events = POLLIN };

		if (poll(&wait, 1, (int)((end_ns - now) / NS_PER_MS) + 1) > 0)
			poll(NULL, 0, 1); /* it has ended, but its tracer has not seen that yet */
	}
	if (is_reaped)
		close(helper->pid_fd);
	else
		leave_to_reaper(helper->pid_fd);
	*helper = (struct helper)HELPER_NONE;
	return is_reaped && (info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED) ? info.si_status : 0;
}

int spawn_end(struct helper *helper)
{
	return end_within(helper, SPAWN_END_MS * NS_PER_MS);
}

void spawn_leave(struct helper *helper)
{
	end_within(helper, 0);
}
