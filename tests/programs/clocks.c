// SPDX-License-Identifier: Apache-2.0
/* clocks SECONDS: main > outer > clock_loop reads the time through the vdso. */
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>

#include "known.h"

static volatile long sink;

KNOWN static long clock_loop(void)
{
	struct timespec now;
	long nr = 0;

	ENTER();
	known_print();
	known_ready();
	for (; !known_done; nr++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
		nr += sched_getcpu() & 1;
		nr += time(NULL) & 1;
	}
	return nr;
}

KNOWN static long outer(void)
{
	volatile char room[50];

	ENTER();
	room[3] = 1;
	return clock_loop() + room[3];
}

int main(int argc, char **argv)
{
	(void)argc;
	ENTER();
	known_start(argv[1]);
	sink = outer();
	return 0;
}
