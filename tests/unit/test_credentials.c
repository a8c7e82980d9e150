// SPDX-License-Identifier: Apache-2.0
/* How far the mounts of processes are trusted (credentials_rank), and when /proc/PID/status is read for that. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proxy/credentials.h"
#include "ready_child.h"

static uint32_t nr_status; /* times that a process's status was opened */

int __real_openat64(int folder, const char *path, int flags, ...);
int __wrap_openat64(int folder, const char *path, int flags, ...);
int __wrap_openat64(int folder, const char *path, int flags, ...)
{
	nr_status += !strcmp(path, "status");
	return __real_openat64(folder, path, flags);
}

/* Starts a process with new namespaces of these kinds; skips the test where it may have none. */
static pid_t start(int namespaces)
{
	int ready[2];
	pid_t pid = ready_child_fork(ready);

	if (pid == 0) {
		if (unshare(namespaces))
			_exit(1);
		ready_child_live(ready);
	}
	if (ready_child_wait(ready) != 1) {
		waitpid(pid, NULL, 0);
		print_message("SKIPPED: no right to make namespaces\n");
		skip();
	}
	nr_status = 0;
	return pid;
}

static void end(pid_t pid)
{
	siginfo_t info;

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(credentials_rank((uint32_t)pid, geteuid()), CREDENTIALS_GONE_RANK); /* not reaped yet */
	waitpid(pid, NULL, 0);
	assert_int_equal(credentials_rank((uint32_t)pid, geteuid()), CREDENTIALS_GONE_RANK);
}

static void our_mounts(void **state)
{
	pid_t pid = start(0);

	assert_int_equal(credentials_rank((uint32_t)pid, geteuid() + 1), CREDENTIALS_OUR_RANK);
	assert_int_equal(nr_status, 0);
	end(pid);
}

static void mounts_of_roots(void **state)
{
	pid_t pid = start(CLONE_NEWNS);

	assert_int_equal(credentials_rank((uint32_t)pid, geteuid() + 1), CREDENTIALS_OUR_RANK - 1);
	assert_int_equal(nr_status, 0);
	end(pid);
}

/* They may be anybody's: they count for the files of the process's own user, as it is now. */
static void mounts_of_users(void **state)
{
	pid_t pid = start(CLONE_NEWUSER | CLONE_NEWNS);

	assert_int_equal(credentials_rank((uint32_t)pid, geteuid()), CREDENTIALS_OUR_RANK - 2);
	assert_int_equal(credentials_rank((uint32_t)pid, geteuid() + 1), CREDENTIALS_OWN_RANK);
	assert_int_equal(nr_status, 2);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_mounts),
		cmocka_unit_test(mounts_of_roots),
		cmocka_unit_test(mounts_of_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
