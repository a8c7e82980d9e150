// SPDX-License-Identifier: Apache-2.0
/* forks SECONDS fork|vfork: with fork main > parent > (a child by fork) child > (its child) grandchild > grandchild_leaf, which lives as
 * long as the program. With vfork one child after another burns for 200 ms in main > parent > borrower > borrower_leaf, in its parent's
 * memory. */
#include <sys/wait.h>
#include <time.h>

#include "known.h"

static volatile unsigned long sink;
static volatile sig_atomic_t child_done;

static void on_child_timer(int signo)
{
	(void)signo;
	child_done = 1;
}

KNOWN static unsigned long grandchild_leaf(const char *seconds)
{
	prctl(PR_SET_NAME, "grandchild");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	known_start(seconds);
	puts("chain grandchild main;parent;child;grandchild;grandchild_leaf");
	known_ready();
	return known_spin();
}

KNOWN static unsigned long grandchild(const char *seconds)
{
	volatile char room[50];

	room[3] = 1;
	return grandchild_leaf(seconds) + (unsigned)room[3];
}

KNOWN static unsigned long child(const char *seconds)
{
	pid_t pid = fork();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!pid)
		return grandchild(seconds) + 1;
	waitpid(pid, NULL, 0);
	return 0;
}

KNOWN static unsigned long borrower_leaf(void)
{
	unsigned long state = 88172645463325252UL;
	struct itimerval timer = {.it_value = {0, 200000}};

	child_done = 0;
	prctl(PR_SET_NAME, "borrower");
	setitimer(ITIMER_REAL, &timer, NULL);
	while (!child_done) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	return state;
}

KNOWN static unsigned long borrower(void)
{
	volatile char room[77];

	room[5] = 1;
	return borrower_leaf() + (unsigned)room[5];
}

KNOWN static unsigned long parent(const char *seconds, int is_vfork)
{
	struct timespec now, end;

	if (!is_vfork)
		return child(seconds) + 1;
	puts("chain borrower main;parent;borrower;borrower_leaf");
	known_ready();
	signal(SIGALRM, on_child_timer);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)strtod(seconds, NULL);
	do {
		pid_t pid = vfork();

		if (!pid) {
			sink = borrower();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	return 1;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	known_start(argv[1]);
	sink = parent(argv[1], !strcmp(argv[2], "vfork"));
	return 0;
}
