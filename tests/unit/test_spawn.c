// SPDX-License-Identifier: Apache-2.0
/* This program's main does not call sonde_is_worker. Started as a helper, it repeats what it did before, as programs of forgetful users
 * do. Once that brought a machine down, so every attempt here has limits. */
#include <errno.h>
#include <linux/sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/spawn.h"
#include "debuginfod/fetch_message.h"
#include "debuginfod/fetcher.h"
#include "worker/serve.h"
#include "worker/worker.h"

#include "fuses.h"

#define REPORT_FD 40            /* a pipe that all processes inherit */
#define TRACED "lets itself be traced"
#define BUILD_ID "00112233445566778899aabbccddeeff00112233"

/* What one generation reports. */
struct report {
	uint32_t generation;
	int32_t err;
	char text[256];
};

/* --- a forgetful program -------------------------------------------------------------------------------------------------------------- */

static void report(uint32_t generation, int err, const char *text)
{
	struct report mine = { .generation = generation, .err = err };

	snprintf(mine.text, sizeof(mine.text), "%s", text);
	if (write(REPORT_FD, &mine, sizeof(mine)) != (ssize_t)sizeof(mine))
		_exit(1);
}

static void use_worker(uint32_t generation, const char *word)
{
	CLEANUP(worker_freep) struct worker *worker = NULL;
	CLEANUP(buffer_done) struct buffer answer = BUFFER_INIT(1 << 20);
	struct diag diag = { 0 };
	int err = worker_new_for("/proc/self/exe", word, 1u << 20, &diag, &worker);

	for (int i = 0; worker && i < 3; i++) { /* however often it is requested, it starts once */
		diag = (struct diag){ 0 };
		err = worker_ask(worker, &(struct worker_request){ .max_cpu_ns = 1000000000 }, &diag, &answer);
	}
	report(generation, err, diag.text);
}

static void use_fetcher(uint32_t generation)
{
	char directory[] = "/tmp/sonde-spawn-XXXXXX", name[64];
	struct fetcher *fetcher = NULL;

	if (!mkdtemp(directory) ||
	    fetcher_new(&(struct fetcher_options){ .program = "/proc/self/exe", .cache_path = directory, .urls = "http://nowhere" }, NULL,
			&fetcher) ||
	    fetcher_want(fetcher, BUILD_ID))
		_exit(1);
	for (int i = 0; fetcher_counts(fetcher).nr_open && i < 100; i++)
		fetcher_step(fetcher, 100);
	report(generation, -(int)fetcher_counts(fetcher).nr_failed, fetcher_counts(fetcher).failure);
	fetcher_free(fetcher);
	snprintf(name, sizeof(name), "rm -rf %s", directory);
	_exit(system(name));
}

/* The program's real work, which no helper may reach. */
static int forget(uint32_t generation, const char *word)
{
	if (!strcmp(word, "clears"))
		clearenv();
	if (!strcmp(word, "fetches"))
		use_fetcher(generation);
	else
		use_worker(generation, word);
	return 0;
}

/* --- the test ------------------------------------------------------------------------------------------------------------------------- */

/* Reads all reports of the program and its helpers, until the last of them has ended. */
static size_t run_forgetful(const char *word, struct report *reports, size_t max)
{
	int ends[2], status;
	size_t nr = 0;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (dup2(ends[1], REPORT_FD) < 0)
			_exit(1);
		close(ends[0]);
		close(ends[1]);
		_exit(fuse_shut_in() ? forget(0, word) : 2);
	}
	close(ends[1]);
	while (nr < max && read(ends[0], &reports[nr], sizeof(reports[nr])) == (ssize_t)sizeof(reports[nr]))
		nr++;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2) {
		print_message("no limit of processes could be set: nothing was tried\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
	return nr;
}

static void check_worker(const char *word)
{
	struct report reports[8];

	assert_int_equal(run_forgetful(word, reports, ARRAY_SIZE(reports)), 2);
	assert_int_equal(reports[0].generation, 1); /* the helper */
	assert_int_equal(reports[0].err, -ELOOP);
	assert_non_null(strstr(reports[0].text, "main must ask sonde_is_worker first"));
	assert_int_equal(reports[1].generation, 0); /* the program that started it */
	assert_int_equal(reports[1].err, -ELOOP);
	assert_non_null(strstr(reports[1].text, "main must ask sonde_is_worker first"));
}

static void a_worker_starts_no_worker(void **state)
{
	check_worker("forgets");
}

static void a_cleared_environment_does_not_matter(void **state)
{
	check_worker("clears");
}

static void a_fetcher_starts_no_fetcher(void **state)
{
	struct report reports[8];

	assert_int_equal(run_forgetful("fetches", reports, ARRAY_SIZE(reports)), 2);
	assert_int_equal(reports[0].generation, 1);
	assert_int_equal(reports[0].err, -1); /* files */
	assert_non_null(strstr(reports[0].text, "main must ask sonde_is_worker first"));
	assert_int_equal(reports[1].generation, 0);
	assert_int_equal(reports[1].err, -1);
}

/* Forks a process with this id. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1 };
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (!child) {
		pause();
		_exit(0);
	}
	return child;
}

/* A program that waits for any child has reaped the helper, and its process id now belongs to another process. */
static void ends_nobody_else(void **state)
{
	char *argv[] = { "true", NULL };
	struct helper helper = HELPER_NONE;
	pid_t pid, other;
	int status;

	assert_int_equal(
	    spawn_helper(&(struct spawn_options){ .program = "/bin/true", .argv = argv, .socket_type = SOCK_STREAM }, NULL, &helper), 0);
	pid = helper.pid;
	assert_int_equal(waitpid(-1, &status, 0), pid);
	other = fork_as(pid);
	if (other < 0) {
		print_message("numbers of processes cannot be chosen: %s\n", strerror(errno));
		spawn_end(&helper);
		skip();
	}
	assert_int_equal(other, pid);
	assert_true(spawn_has_ended(&helper));
	assert_int_equal(spawn_end(&helper), 0);
	assert_int_equal(helper.pid, 0);
	usleep(20000);
	assert_int_equal(waitpid(other, &status, WNOHANG), 0); /* still alive */
	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(waitpid(other, &status, 0), other);
}

static int let_be_traced(void)
{
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (write(SPAWN_SOCKET, "", 1) != 1)
		return 1;
	pause();
	return 0;
}

/* Forks a child that traces the process until it is killed itself. */
static pid_t fork_tracer(pid_t pid)
{
	int ends[2];
	char told = 0;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		told = ptrace(PTRACE_SEIZE, pid, NULL, NULL) ? (char)errno : 0;
		if (write(ends[1], &told, 1) == 1)
			pause();
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &told, 1), 1);
	close(ends[0]);
	assert_int_equal(told, 0);
	return child;
}

/* A process held by a tracer looks to its parent like one that the kernel blocks on a file system: killed, but not ended. */
static void does_not_wait_for_ever(void **state)
{
	char *argv[] = { "test_spawn", TRACED, NULL };
	struct helper helper = HELPER_NONE;
	pid_t pid, tracer;
	uint64_t from_ns;
	char ready;

	assert_int_equal(
	    spawn_helper(&(struct spawn_options){ .program = "/proc/self/exe", .argv = argv, .socket_type = SOCK_STREAM }, NULL, &helper),
	    0);
	assert_int_equal(read(helper.socket, &ready, 1), 1);
	pid = helper.pid;
	tracer = fork_tracer(pid);
	from_ns = clock_ns();
	assert_int_equal(spawn_end(&helper), 0);
	assert_true(clock_ns() - from_ns >= SPAWN_END_MS * NS_PER_MS);
	assert_int_equal(helper.pid, 0);
	assert_int_equal(kill(pid, 0), 0); /* still there */
	assert_int_equal(kill(tracer, SIGKILL), 0);
	assert_int_equal(waitpid(tracer, NULL, 0), tracer);
	for (int i = 0; i < 1000 && !kill(pid, 0); i++)
		usleep(10000);
	assert_int_equal(kill(pid, 0), -1); /* not even as a zombie */
}

static void this_is_no_helper(void **state)
{
	assert_false(spawn_is_helper());
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_is_no_helper),
		cmocka_unit_test(a_worker_starts_no_worker),
		cmocka_unit_test(a_cleared_environment_does_not_matter),
		cmocka_unit_test(a_fetcher_starts_no_fetcher),
		cmocka_unit_test(ends_nobody_else),
		cmocka_unit_test(does_not_wait_for_ever),
	};

	if (argc == 2 && !strcmp(argv[1], TRACED))
		return let_be_traced();
	if (fuse_count_generation())
		return forget(fuse_generation(), argc == 3 ? argv[2] : "fetches");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
