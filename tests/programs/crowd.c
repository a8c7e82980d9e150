// SPDX-License-Identifier: Apache-2.0
/* crowd SECONDS: 200 threads spin at the same time, each with its own name. Each is one frame deeper than the previous one, up to ten,
 * then from one again. */
#include <pthread.h>

#include "known.h"

#define NR_THREADS 200

static pthread_barrier_t printed;
static volatile unsigned long sink;

KNOWN static unsigned long crowd_leaf(void)
{
	ENTER();
	known_print();
	pthread_barrier_wait(&printed);
	return known_spin();
}

KNOWN static unsigned long crowd_deep(unsigned n)
{
	volatile unsigned char room[20];

	ENTER();
	room[n] = 1;
	return (n ? crowd_deep(n - 1) : crowd_leaf()) + room[n];
}

KNOWN static void *crowd_thread(void *arg)
{
	unsigned number = *(const unsigned *)arg;
	char name[16];

	ENTER();
	snprintf(name, sizeof(name), "crowd-%u", number);
	prctl(PR_SET_NAME, name);
	sink += crowd_deep(number % 10);
	return NULL;
}

int main(int argc, char **argv)
{
	static unsigned numbers[NR_THREADS];
	static pthread_t threads[NR_THREADS];

	(void)argc;
	if (nice(19) < 0) /* else a profiler would get a hundredth of the CPUs */
		return 2;
	known_start(argv[1]);
	pthread_barrier_init(&printed, NULL, NR_THREADS + 1);
	for (unsigned i = 0; i < NR_THREADS; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, crowd_thread, &numbers[i]))
			return 2;
	}
	pthread_barrier_wait(&printed);
	known_ready();
	for (unsigned i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
