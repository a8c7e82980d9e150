// SPDX-License-Identifier: Apache-2.0
/* The program after `--`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/command.h"

static struct command *start(char *const *argv)
{
	struct command *command = NULL;

	assert_int_equal(command_new(argv, NULL, &command), 0);
	assert_true(command_tgid(command) > 1);
	return command;
}

static int wait_for(struct command *command)
{
	int status = -1;

	for (int ms = 0; ms < 5000 && !command_ended(command, &status); ms++)
		usleep(1000);
	assert_true(command_ended(command, &status));
	return status;
}

static bool has_children(void)
{
	siginfo_t info;

	return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
}

static void check_status(const char *script, int want)
{
	char *const argv[] = { "/bin/sh", "-c", (char *)script, NULL };
	struct command *command = start(argv);
	int status;

	usleep(1000);
	assert_false(command_ended(command, &status)); /* waits to be released */
	assert_int_equal(command_release(command, NULL), 0);
	assert_int_equal(wait_for(command), want);
	assert_int_equal(wait_for(command), want); /* the same at every call */
	command_stop(command);                       /* there is nothing to stop */
	assert_int_equal(wait_for(command), want);
	command_free(command);
	assert_false(has_children());
}

static void test_exit_status(void **state)
{
	check_status("exit 0", 0);
	check_status("exit 7", 7 << 8);
	check_status("kill -9 $$", SIGKILL);
	check_status("kill -TERM $$", SIGTERM);
}

/* `code`: what a shell exits with. */
static void check_exec_failure(const char *path, int err, int code)
{
	char *const argv[] = { (char *)path, NULL };
	struct command *command = start(argv);
	struct diag diag = { 0 };
	int status;

	assert_int_equal(command_release(command, &diag), -err);
	assert_int_equal(command_failure_code(-err), code);
	assert_non_null(strstr(diag.text, path));
	assert_false(command_ended(command, &status)); /* there was no program */
	command_stop(command);
	command_free(command);
	assert_false(has_children());
}

static void test_exec_fails(void **state)
{
	char path[] = "/tmp/sonde-test-XXXXXX";

	close(mkstemp(path));
	check_exec_failure("/no/such/program", ENOENT, 127);
	check_exec_failure("no-such-program-in-the-path", ENOENT, 127);
	check_exec_failure(path, EACCES, 126);
	chmod(path, 0700);
	check_exec_failure("/tmp", EACCES, 126);
	unlink(path);
}

static void test_free_without_release(void **state)
{
	char *const argv[] = { "/bin/sh", "-c", "touch /tmp/sonde-must-not-be-there", NULL };
	struct command *command = start(argv);

	command_free(command);
	assert_false(has_children());
	assert_int_not_equal(access("/tmp/sonde-must-not-be-there", F_OK), 0);
	command_free(NULL);
}

static void test_stop(void **state)
{
	char *const argv[] = { "/bin/sleep", "100", NULL };
	struct command *command = start(argv);
	int status;

	assert_int_equal(command_release(command, NULL), 0);
	assert_false(command_ended(command, &status));
	command_stop(command);
	assert_false(command_ended(command, &status)); /* it did not end by itself */
	command_free(command);
	assert_false(has_children());
}

/* Killed before it was released. */
static void test_killed_early(void **state)
{
	char *const argv[] = { "/bin/true", NULL };
	struct command *command = start(argv);
	siginfo_t info;

	kill((pid_t)command_tgid(command), SIGKILL);
	assert_int_equal(waitid(P_PID, command_tgid(command), &info, WEXITED | WNOWAIT), 0);
	assert_int_not_equal(command_release(command, NULL), 0); /* and no SIGPIPE */
	command_free(command);
	assert_false(has_children());
}

/* If our parent had children reaped by the kernel, there is no status, but an end. */
static void test_reaped_by_the_kernel(void **state)
{
	char *const argv[] = { "/bin/true", NULL };
	struct command *command;

	signal(SIGCHLD, SIG_IGN);
	command = start(argv);
	assert_int_equal(command_release(command, NULL), 0);
	assert_int_equal(wait_for(command), 0);
	command_free(command);
	signal(SIGCHLD, SIG_DFL);
}

/* The program inherits no descriptor of ours. */
static void test_descriptors(void **state)
{
	char script[128];
	int nr = 0;

	for (int fd = 0; fd < 1024; fd++)
		nr += fcntl(fd, F_GETFD) == 0; /* open, and not closed by exec */
	snprintf(script, sizeof(script), "test \"$(ls /proc/$$/fd | wc -l)\" -le %d", nr + 1); /* one is the shell's own pipe */
	check_status(script, 0);
}

static void ignore(int number)
{
}

/* A program that embeds the library may have a timer whose signal interrupts system calls. */
static void test_interrupted(void **state)
{
	const struct itimerval each = { .it_interval.tv_usec = 200, .it_value.tv_usec = 200 }, none = { 0 };
	struct sigaction handled = { .sa_handler = ignore }, before; /* no SA_RESTART */
	char *const argv[] = { "/no/such/program", NULL };

	assert_int_equal(sigaction(SIGALRM, &handled, &before), 0);
	for (int i = 0; i < 50; i++) {
		struct command *command = start(argv), *unused = start(argv);

		assert_int_equal(setitimer(ITIMER_REAL, &each, NULL), 0);
		assert_int_equal(command_release(command, NULL), -ENOENT);
		command_free(unused);
		assert_int_equal(setitimer(ITIMER_REAL, &none, NULL), 0);
		command_free(command);
		assert_false(has_children());
	}
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_status), cmocka_unit_test(test_exec_fails), cmocka_unit_test(test_free_without_release),
		cmocka_unit_test(test_stop), cmocka_unit_test(test_killed_early), cmocka_unit_test(test_reaped_by_the_kernel),
		cmocka_unit_test(test_descriptors), cmocka_unit_test(test_interrupted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
