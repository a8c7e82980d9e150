// SPDX-License-Identifier: Apache-2.0
/* Allocates for so many seconds in threads of different kinds, and prints "alloc FUNCTION COUNT BYTES" for each function that asked: two
 * that compute and change what they do, one that sleeps most of the time; with "tight" also one that does nothing but allocate. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ASKED(X) X(ask_small, 100) X(ask_large, 3000) X(ask_burst, 8000) X(ask_tight, 48)

enum { LOOP_SMALL = 3000, LOOP_LARGE = 12000, LOOP_BURST = 2000, BURST = 40 };

#define X(name, bytes) \
	static uint64_t nr_##name; \
	static __attribute__((noipa)) void name(void) \
	{ \
		void *volatile block = malloc(bytes); \
\
		free(block); \
	}
ASKED(X)
#undef X

static uint64_t end_ns;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void compute(int loops)
{
	for (volatile int i = 0; i < loops; i++)
		;
}

/* Phases that no cycle of windows is a multiple of. */
static void *work(void *arg)
{
	uint64_t nr_small = 0, nr_large = 0;

	(void)arg;
	for (uint64_t phase = now_ns(); phase < end_ns; phase = now_ns()) {
		for (; now_ns() < phase + 37000000; nr_small += 2) {
			ask_small();
			compute(LOOP_SMALL);
			ask_small();
			compute(LOOP_SMALL);
		}
		for (; now_ns() < phase + 90000000; nr_large++) {
			ask_large();
			compute(LOOP_LARGE);
		}
	}
	__atomic_add_fetch(&nr_ask_small, nr_small, __ATOMIC_RELAXED);
	__atomic_add_fetch(&nr_ask_large, nr_large, __ATOMIC_RELAXED);
	return NULL;
}

static void *burst(void *arg)
{
	(void)arg;
	while (now_ns() < end_ns) {
		for (int i = 0; i < BURST; i++) {
			ask_burst();
			compute(LOOP_BURST);
		}
		nr_ask_burst += BURST;
		usleep(5000);
	}
	return NULL;
}

static void *allocate(void *arg)
{
	(void)arg;
	while (now_ns() < end_ns) {
		for (int i = 0; i < 1000; i++)
			ask_tight();
		nr_ask_tight += 1000;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	void *(*const kinds[])(void *) = { work, work, burst, allocate };
	int nr = argc > 2 && !strcmp(argv[2], "tight") ? 4 : 3;
	pthread_t threads[4];

	end_ns = now_ns() + strtoull(argc > 1 ? argv[1] : "1", NULL, 10) * 1000000000u;
	for (int i = 0; i < nr; i++) {
		if (pthread_create(&threads[i], NULL, kinds[i], NULL))
			return 1;
	}
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
#define X(name, bytes) printf("alloc " #name " %ju %ju\n", (uintmax_t)nr_##name, (uintmax_t)nr_##name * (bytes));
	ASKED(X)
#undef X
	return 0;
}
