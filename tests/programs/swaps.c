// SPDX-License-Identifier: Apache-2.0
/* swaps SECONDS THREADS: threads that sleep 4 ms in turn as body > red > red_leaf and body > blue > blue_leaf. The two stacks differ
 * only in the functions. If a profiler reads parts of a stack at different times, the leaf of one appears under the other. */
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "known.h"

static volatile unsigned long sink;

/* With the system call in this function: its address is in a register, the rest of the stack is in memory. */
static inline __attribute__((always_inline)) unsigned long rest(void)
{
	const struct timespec time = { 0, 4000000 };
#ifdef __x86_64__
	unsigned long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(SYS_nanosleep), "D"(&time), "S"(0) : "rcx", "r11", "memory");
	return result;
#else
	return (unsigned long)nanosleep(&time, NULL);
#endif
}

KNOWN static unsigned long red_leaf(unsigned n) { return rest() + n; }
KNOWN static unsigned long blue_leaf(unsigned n) { return rest() + n; }
KNOWN static unsigned long red(unsigned n) { return red_leaf(n + 1) + n; }
KNOWN static unsigned long blue(unsigned n) { return blue_leaf(n + 1) + n; }

KNOWN static void *body(void *arg)
{
	while (!known_done)
		sink += red(1) + blue(2);
	return arg;
}

int main(int argc, char **argv)
{
	int nr = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
	pthread_t thread;

	known_start(argv[1]);
	for (int i = 0; i < nr; i++)
		if (pthread_create(&thread, NULL, body, NULL))
			return 1;
	known_ready();
	while (!known_done)
		pause();
	return 0;
}
