// SPDX-License-Identifier: Apache-2.0
/* children SECONDS [PROGRAM ARG...]: starts short-lived processes one after another. Without PROGRAM each is a fork that spins for 40 ms
 * in main > parent_loop > child_work > child_leaf. With PROGRAM each executes it. */
#include <sys/wait.h>

#include "known.h"

static volatile unsigned long sink;

KNOWN static unsigned long child_leaf(void)
{
	struct itimerval timer = {.it_value = {0, 40000}};

	known_done = 0;
	prctl(PR_SET_NAME, "child");
	setitimer(ITIMER_REAL, &timer, NULL);
	return known_spin();
}

KNOWN static unsigned long child_work(void)
{
	volatile char room[77];

	room[5] = 1;
	return child_leaf() + (unsigned)room[5];
}

KNOWN static unsigned parent_loop(char **argv)
{
	unsigned nr = 0;

	puts("chain child main;parent_loop;child_work;child_leaf");
	known_ready();
	for (; !known_done; nr++) {
		pid_t pid = fork();

		if (pid < 0)
			return nr;
		if (!pid && argv[0]) {
			execv(argv[0], argv);
			_exit(127);
		}
		if (!pid) {
			sink = child_work();
			_exit(0);
		}
		while (waitpid(pid, NULL, 0) < 0)
			;
	}
	return nr;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	known_start(argv[1]);
	printf("%u children\n", parent_loop(argv + 2));
	return 0;
}
