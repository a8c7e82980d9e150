// SPDX-License-Identifier: Apache-2.0
/* coroutines SECONDS burn|switch: main > scheduler runs three coroutines in turn, each on its own stack. Each sets its own thread name,
 * spins in its leaf and returns the CPU. With `switch` it hardly spins. */
#include <ucontext.h>

#include "known.h"

#define NR_COROUTINES 3
#define STACK_BYTES 65536

static ucontext_t home, contexts[NR_COROUTINES];
static unsigned nr_rounds;
static volatile unsigned long sink;

static inline __attribute__((always_inline)) unsigned long spin(void)
{
	unsigned long state = 1;

	for (unsigned i = 0; i < nr_rounds && !known_done; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		__asm__ volatile("" : "+r"(state));
	}
	return state;
}

KNOWN static unsigned long red_leaf(void) { return spin(); }
KNOWN static unsigned long green_leaf(void) { return spin(); }
KNOWN static unsigned long blue_leaf(void) { return spin(); }
KNOWN static unsigned long red_deep(unsigned n)
{
	volatile char room[30];
	room[n] = 1;
	return (n ? red_deep(n - 1) : red_leaf()) + (unsigned)room[n];
}
KNOWN static unsigned long green_deep(void) { volatile char room[300]; room[7] = 1; return green_leaf() + (unsigned)room[7]; }

static void named(const char *name)
{
	if (nr_rounds > 1000) /* a system call is slow compared with a switch */
		prctl(PR_SET_NAME, name);
}

static void give_back(unsigned i)
{
	named("scheduler");
	swapcontext(&contexts[i], &home);
}

static void red(void) { for (;;) { named("red"); sink = red_deep(9); give_back(0); } }
static void green(void) { for (;;) { named("green"); sink = green_deep(); give_back(1); } }
static void blue(void) { for (;;) { named("blue"); sink = blue_leaf(); give_back(2); } }

KNOWN static unsigned scheduler(void)
{
	unsigned nr = 0;

	ENTER();
	known_print();
	known_ready();
	for (; !known_done; nr++)
		swapcontext(&home, &contexts[nr % NR_COROUTINES]);
	return nr;
}

static int prepare(unsigned i, void (*body)(void))
{
	if (getcontext(&contexts[i]))
		return -1;
	contexts[i].uc_stack.ss_size = STACK_BYTES;
	contexts[i].uc_stack.ss_sp = malloc(STACK_BYTES);
	if (!contexts[i].uc_stack.ss_sp)
		return -1;
	makecontext(&contexts[i], body, 0);
	return 0;
}

int main(int argc, char **argv)
{
	ENTER();
	nr_rounds = argc > 2 && !strcmp(argv[2], "switch") ? 60 : 20000000;
	if (prepare(0, red) || prepare(1, green) || prepare(2, blue))
		return 2;
	prctl(PR_SET_NAME, "scheduler");
	known_start(argv[1]);
	sink = scheduler();
	return 0;
}
