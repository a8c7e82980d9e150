/* SPDX-License-Identifier: Apache-2.0 */
/* known: shared code of the workloads. Every function on a program's path records its name on entry, so that the printed chain is that
 * of the real stack. Protocol, read by tests/system/harness.py, on stdout:
 *   pid N
 *   chain COMM main;f0;...;leaf     one per thread, root to leaf
 *   ready                           from now on the time is spent in the leaf
 * Nothing is called while spinning: a timer signal sets a flag. */
#pragma once
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <unistd.h>

#define KNOWN_MAX_FRAMES 16384
#if defined(__clang__)
#define KNOWN __attribute__((noinline))
#else
#define KNOWN __attribute__((noipa))
#endif

static __thread const char *known_trail[KNOWN_MAX_FRAMES];
static __thread unsigned known_nr;
static volatile sig_atomic_t known_done;

static inline __attribute__((always_inline)) void known_enter(const char *name)
{
	if (known_nr < KNOWN_MAX_FRAMES)
		known_trail[known_nr++] = name;
}
#define ENTER() known_enter(__func__)

static void known_alarm(int signo)
{
	(void)signo;
	known_done = 1;
}

/* Ends the spinning after that many seconds of wall time. */
__attribute__((unused)) static void known_start(const char *seconds)
{
	double s = seconds ? strtod(seconds, NULL) : 1.0;
	struct itimerval timer = {{0, 0}, {(time_t)s, (suseconds_t)((s - (double)(time_t)s) * 1e6)}};

	signal(SIGALRM, known_alarm);
	setitimer(ITIMER_REAL, &timer, NULL);
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	printf("pid %d\n", (int)getpid());
}

/* The leaf calls this: prints this thread's chain in one piece. */
__attribute__((unused)) static void known_print(void)
{
	char comm[17] = "";

	prctl(PR_GET_NAME, comm);
	flockfile(stdout);
	printf("chain %s ", comm);
	for (unsigned i = 0; i < known_nr; i++)
		printf("%s%s", i ? ";" : "", known_trail[i]);
	putchar('\n');
	funlockfile(stdout);
}

__attribute__((unused)) static void known_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static inline __attribute__((always_inline)) unsigned long known_spin(void)
{
	unsigned long state = 88172645463325252UL;

	while (!known_done) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	return state;
}
