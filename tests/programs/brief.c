// SPDX-License-Identifier: Apache-2.0
/* brief MILLISECONDS: uses that much CPU time in main > brief_work > brief_leaf and ends. Tests that a profiler sees short processes. */
#include <stdlib.h>
#include <time.h>

#define KNOWN __attribute__((noipa))

static double used_ms(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

KNOWN static unsigned brief_leaf(double ms)
{
	unsigned n = 0;

	while (used_ms() < ms) {
		for (int i = 0; i < 5000; i++)
			__asm__ volatile("" : "+r"(n));
	}
	return n;
}

KNOWN static unsigned brief_work(double ms)
{
	volatile char room[77];

	room[5] = 1;
	return brief_leaf(ms) + (unsigned)room[5];
}

int main(int argc, char **argv)
{
	return argc < 2 || brief_work(strtod(argv[1], NULL)) == 12345;
}
