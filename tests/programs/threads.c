// SPDX-License-Identifier: Apache-2.0
/* threads SECONDS: the main thread and three others, each with its own name and chain. They start to spin together. */
#include <pthread.h>

#include "known.h"

static pthread_barrier_t printed;
static volatile unsigned long sink;

static inline __attribute__((always_inline)) unsigned long bottom(void)
{
	known_print();
	pthread_barrier_wait(&printed);
	return known_spin();
}

KNOWN static unsigned long red_leaf(void) { ENTER(); return bottom(); }
KNOWN static unsigned long red_deep(unsigned n) { ENTER(); return n ? red_deep(n - 1) + n : red_leaf() + 1; }
KNOWN static unsigned long green_leaf(void) { ENTER(); return bottom(); }
KNOWN static unsigned long green_outer(void) { ENTER(); return green_leaf() + 2; }
KNOWN static unsigned long blue_leaf(void) { ENTER(); return bottom(); }
KNOWN static unsigned long blue_inner(void) { volatile char room[3000]; ENTER(); room[7] = 1; return blue_leaf() + (unsigned)room[7]; }
KNOWN static unsigned long blue_outer(void) { ENTER(); return blue_inner() + 3; }

KNOWN static void *red(void *arg) { ENTER(); prctl(PR_SET_NAME, "red"); sink += red_deep(20); return arg; }
KNOWN static void *green(void *arg) { ENTER(); prctl(PR_SET_NAME, "green"); sink += green_outer(); return arg; }
KNOWN static void *blue(void *arg) { ENTER(); prctl(PR_SET_NAME, "blue"); sink += blue_outer(); return arg; }

KNOWN static unsigned long main_leaf(void)
{
	ENTER();
	known_print();
	pthread_barrier_wait(&printed);
	known_ready();
	return known_spin();
}

int main(int argc, char **argv)
{
	void *(*const bodies[])(void *) = {red, green, blue};
	pthread_t threads[3];

	(void)argc;
	ENTER();
	known_start(argv[1]);
	pthread_barrier_init(&printed, NULL, 4);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, bodies[i], NULL))
			return 1;
	sink += main_leaf();
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
