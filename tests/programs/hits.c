// SPDX-License-Identifier: Apache-2.0
/* hits NR: at a line on standard input, calls probed() NR times in each of several ways: by recursion of several depths, from libc's
 * qsort, from two threads. probed() makes a system call (getppid) and passes a USDT probe with a semaphore, hits:point. Prints each way,
 * root to leaf, and how often it was taken:
 *   way COUNT main;deep;deep;probed
 * then "semaphore N", its value in between, and waits for the end of its input. */
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "known.h"

#define NR_DEPTHS 3
#define NR_THREADS 2
#define MAX_WAY 1024

unsigned short hits_point_semaphore __attribute__((section(".probes"), used));
static const unsigned depths[NR_DEPTHS] = {1, 7, 40};
static volatile unsigned long sink;
static unsigned long nr_turns, nr_compared;
static unsigned short semaphore_seen;

/* As SystemTap's sys/sdt.h defines it. */
static inline __attribute__((always_inline)) void point(void)
{
	__asm__ volatile("990: nop\n"
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"
			 ".balign 4\n"
			 ".4byte 992f-991f, 994f-993f, 3\n"
			 "991: .asciz \"stapsdt\"\n"
			 "992: .balign 4\n"
			 "993: .8byte 990b, _.stapsdt.base, hits_point_semaphore\n"
			 ".asciz \"hits\"\n"
			 ".asciz \"point\"\n"
			 ".asciz \"\"\n"
			 "994: .balign 4\n"
			 ".popsection\n"
			 ".ifndef _.stapsdt.base\n"
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
			 ".weak _.stapsdt.base\n"
			 ".hidden _.stapsdt.base\n"
			 "_.stapsdt.base: .space 1\n"
			 ".size _.stapsdt.base, 1\n"
			 ".popsection\n"
			 ".endif\n");
}

KNOWN unsigned long probed(unsigned long n)
{
	unsigned long state = n | 1;

	for (int i = 0; i < 500; i++)
		state = state * 6364136223846793005UL + n;
	point();
	semaphore_seen = hits_point_semaphore;
	return state + (unsigned long)syscall(SYS_getppid);
}

KNOWN static unsigned long deep(unsigned left, unsigned long n)
{
	volatile unsigned long more = left > 1 ? deep(left - 1, n) : probed(n);

	return more + left;
}

KNOWN static int compare(const void *left, const void *right)
{
	unsigned a = *(const unsigned *)left, b = *(const unsigned *)right;

	__atomic_fetch_add(&nr_compared, 1, __ATOMIC_RELAXED);
	sink = probed(a);
	return a < b ? -1 : a > b;
}

KNOWN static void sorts(void)
{
	unsigned values[16], seed = 1;

	for (int i = 0; i < 16; i++)
		values[i] = seed = seed * 1103515245u + 12345u;
	qsort(values, 16, sizeof(values[0]), compare);
	sink = values[0];
}

KNOWN static void *in_thread(void *arg)
{
	volatile unsigned long sum = 0;

	for (unsigned long i = 0; i < nr_turns; i++)
		sum += deep(5, i);
	return arg;
}

static void way(unsigned long count, const char *begin, const char *again, unsigned nr, const char *end)
{
	printf("way %lu %s", count, begin);
	for (unsigned i = 0; i < nr; i++)
		printf(";%s", again);
	printf(";%s\n", end);
}

KNOWN static void all_ways(void)
{
	pthread_t threads[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++) {
		if (pthread_create(&threads[i], NULL, in_thread, NULL))
			exit(1);
	}
	for (unsigned long i = 0; i < nr_turns; i++) {
		for (int d = 0; d < NR_DEPTHS; d++)
			sink = deep(depths[d], i);
		if (i % 32 == 0)
			sorts();
	}
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int d = 0; d < NR_DEPTHS; d++)
		way(nr_turns, "main;all_ways", "deep", depths[d], "probed");
	way(nr_compared, "main;all_ways;sorts", "compare", 1, "probed");
	way(NR_THREADS * nr_turns, "in_thread", "deep", 5, "probed");
	printf("semaphore %hu\n", semaphore_seen);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[64];

	nr_turns = strtoul(argc > 1 ? argv[1] : "1000", NULL, 10);
	printf("pid %d\nready\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		all_ways();
	return 0;
}
