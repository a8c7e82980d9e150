/* SPDX-License-Identifier: Apache-2.0 */
/* ready_child: a child process that says when it is as the test wants it, and ends with the test. */
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* As fork(2). */
static inline pid_t ready_child_fork(int ready[2])
{
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	return fork();
}

/* In the child, after its last change of user, which clears the signal. */
static inline _Noreturn void ready_child_live(const int ready[2])
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(ready[1], "x", 1) == 1)
		pause();
	_exit(1);
}

/* In the parent. 1: the child lives; 0: it executes a program, or has ended. */
static inline ssize_t ready_child_wait(const int ready[2])
{
	ssize_t nr;
	char byte;

	close(ready[1]);
	nr = read(ready[0], &byte, 1);
	close(ready[0]);
	return nr;
}
