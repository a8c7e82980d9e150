// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/target.h"

#define NO_SUCH_ID 0x7ffffff0u

/* A child with a second thread, whose tid it reports. */
struct child {
	pid_t pid;
	uint32_t second_tid;
};

static void *second_thread(void *arg)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	const int *tell = arg;

	if (write(*tell, &tid, sizeof(tid)) == sizeof(tid))
		pause();
	return NULL;
}

static struct child start_child(void)
{
	struct child child;
	int tell[2];

	assert_int_equal(pipe(tell), 0);
	child.pid = fork();
	if (!child.pid) {
		pthread_t thread;

		pthread_create(&thread, NULL, second_thread, &tell[1]);
		pause();
	}
	assert_int_equal(read(tell[0], &child.second_tid, sizeof(child.second_tid)), sizeof(child.second_tid));
	close(tell[0]);
	close(tell[1]);
	return child;
}

static void end_child(pid_t pid)
{
	siginfo_t info;

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0); /* a zombie from now on */
}

static void test_processes(void **state)
{
	CLEANUP(targets_done) struct targets targets = { 0 };
	struct child child = start_child();
	uint32_t ids[] = { (uint32_t)getpid(), (uint32_t)child.pid };

	assert_int_equal(targets_of_tgids(ids, 2, NULL, &targets), 0);
	assert_int_equal(targets.nr, 2);
	assert_int_equal(targets.list[1].tgid, child.pid);
	assert_int_equal(targets.list[1].tid, 0);
	assert_non_null(targets_living(&targets));
	targets_done(&targets);
	assert_null(targets_living(&targets)); /* none were requested */
	assert_int_equal(targets_of_tgids(ids + 1, 1, NULL, &targets), 0);
	assert_non_null(targets_living(&targets));
	end_child(child.pid);
	assert_null(targets_living(&targets)); /* as a zombie, too */
	waitpid(child.pid, NULL, 0);
	assert_null(targets_living(&targets));
}

static void test_threads(void **state)
{
	CLEANUP(targets_done) struct targets targets = { 0 };
	struct child child = start_child();
	struct diag diag = { 0 };
	uint32_t ids[] = { child.second_tid, (uint32_t)child.pid };

	assert_int_equal(targets_of_tids(ids, 2, NULL, &targets), 0);
	assert_int_equal(targets.list[0].tgid, child.pid);
	assert_int_equal(targets.list[0].tid, child.second_tid);
	assert_int_equal(targets.list[1].tid, child.pid);
	assert_non_null(targets_living(&targets));
	assert_int_equal(targets_of_tgids(ids, 1, &diag, &targets), -EINVAL); /* a thread id where a process id is required */
	assert_non_null(strstr(diag.text, "-L"));
	assert_int_equal(targets.nr, 2); /* unchanged */
	end_child(child.pid);
	waitpid(child.pid, NULL, 0);
	assert_null(targets_living(&targets));
}

static void test_missing(void **state)
{
	CLEANUP(targets_done) struct targets targets = { 0 };
	uint32_t ids[] = { (uint32_t)getpid(), NO_SUCH_ID };
	struct child child = start_child();
	struct diag diag = { 0 };

	assert_int_equal(targets_of_tgids(ids, 2, &diag, &targets), -ESRCH);
	assert_non_null(strstr(diag.text, "2147483632"));
	assert_int_equal(targets_of_tids(ids, 2, NULL, &targets), -ESRCH);
	ids[0] = 0;
	assert_int_equal(targets_of_tgids(ids, 1, NULL, &targets), -ESRCH);
	end_child(child.pid);
	ids[0] = (uint32_t)child.pid;
	assert_int_equal(targets_of_tgids(ids, 1, NULL, &targets), -ESRCH);
	waitpid(child.pid, NULL, 0);
	assert_null(targets.list);
}

static void *only_thread(void *arg)
{
	char state = 0;
	const int *tell = arg;

	usleep(20000); /* the first thread ends */
	if (write(*tell, &state, 1) == 1)
		pause();
	return NULL;
}

/* After the first thread has ended, it is gone as a thread, but the process lives on. */
static void test_first_thread_ended(void **state)
{
	CLEANUP(targets_done) struct targets targets = { 0 };
	int tell[2];
	uint32_t id;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(tell), 0);
	pid = fork();
	if (!pid) {
		pthread_t thread;

		pthread_create(&thread, NULL, only_thread, &tell[1]);
		pthread_exit(NULL);
	}
	assert_int_equal(read(tell[0], &byte, 1), 1);
	id = (uint32_t)pid;
	assert_int_equal(targets_of_tids(&id, 1, NULL, &targets), -ESRCH);
	assert_int_equal(targets_of_tgids(&id, 1, NULL, &targets), 0);
	assert_non_null(targets_living(&targets));
	end_child(pid);
	assert_null(targets_living(&targets));
	waitpid(pid, NULL, 0);
	close(tell[0]);
	close(tell[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_first_thread_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
