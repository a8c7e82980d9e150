// SPDX-License-Identifier: Apache-2.0
/* Allocates for so many seconds, and prints "alloc ask_block COUNT BYTES". "leaderless": in a second thread, and the first one ends
 * at once. "short": in threads that live for a part of a millisecond, four at a time. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 100, LOOP = 6000, CALLS = 20, THREADS = 4 };

static uint64_t end_ns, nr_asked;

static __attribute__((noipa)) void ask_block(void)
{
	void *volatile block = malloc(BYTES);

	free(block);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *ask_some(void *arg)
{
	for (int i = 0; i < CALLS; i++) {
		ask_block();
		for (volatile int loop = 0; loop < LOOP; loop++)
			;
	}
	__atomic_add_fetch(&nr_asked, CALLS, __ATOMIC_RELAXED);
	return arg;
}

static void print(void)
{
	printf("alloc ask_block %llu %llu\n", (unsigned long long)nr_asked, (unsigned long long)nr_asked * BYTES);
	fflush(stdout);
}

static void *ask_on(void *arg)
{
	while (now_ns() < end_ns)
		ask_some(arg);
	print();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc < 3)
		return 1;
	end_ns = now_ns() + (uint64_t)atoi(argv[2]) * 1000000000u;
	if (!strcmp(argv[1], "leaderless")) {
		if (pthread_create(&threads[0], NULL, ask_on, NULL))
			return 1;
		usleep(300000);
		pthread_exit(NULL);
	}
	while (now_ns() < end_ns) {
		int nr = 0;

		while (nr < THREADS && !pthread_create(&threads[nr], NULL, ask_some, NULL))
			nr++;
		while (nr--)
			pthread_join(threads[nr], NULL);
		usleep(500);
	}
	print();
	return 0;
}
