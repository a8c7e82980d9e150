// SPDX-License-Identifier: Apache-2.0
/* brief_deep MILLISECONDS [thread]: uses that much CPU time in 300 times thin > 10 times wide > deep_leaf and ends. A frame of thin
 * takes a KiB, one of wide 16.6 KB, most of it never touched. Runs in main, or in a thread. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define KNOWN __attribute__((noipa))
#define NR_THIN 300
#define NR_WIDE 10

static double ms;

static double used_ms(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

KNOWN static unsigned deep_leaf(void)
{
	unsigned n = 0;

	while (used_ms() < ms) {
		for (int i = 0; i < 5000; i++)
			__asm__ volatile("" : "+r"(n));
	}
	return n;
}

KNOWN static unsigned wide(unsigned left)
{
	volatile char room[16600];

	room[7] = 1;
	return (left ? wide(left - 1) : deep_leaf()) + (unsigned)room[7];
}

KNOWN static unsigned thin(unsigned left)
{
	volatile char room[1000];

	room[7] = 1;
	return (left ? thin(left - 1) : wide(NR_WIDE - 1)) + (unsigned)room[7];
}

KNOWN static void *work(__attribute__((unused)) void *arg)
{
	return (void *)(size_t)(thin(NR_THIN - 1) == 12345);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *result = NULL;

	if (argc < 2)
		return 2;
	ms = strtod(argv[1], NULL);
	if (argc == 2)
		result = work(NULL);
	else if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, &result))
		return 2;
	return result != NULL;
}
