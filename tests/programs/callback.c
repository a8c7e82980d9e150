// SPDX-License-Identifier: Apache-2.0
/* callback SECONDS: main > level1 > level2 > work > do_qsort > libc's qsort > cmpfn, over and over. Most of the time is in cmpfn, behind
 * libc frames without frame pointers. The printed chain ends with do_qsort. */
#include "known.h"

#define NR 64

static volatile unsigned long sink;

KNOWN static int cmpfn(const void *left, const void *right)
{
	unsigned a = *(const unsigned *)left, b = *(const unsigned *)right;
	unsigned long state = a | 1;

	for (int i = 0; i < 2000; i++)
		state = state * 6364136223846793005UL + b;
	sink = state;
	return a < b ? -1 : a > b;
}

KNOWN static unsigned do_qsort(void)
{
	unsigned values[NR], seed = 1;

	ENTER();
	known_print();
	known_ready();
	while (!known_done) {
		for (int i = 0; i < NR; i++)
			values[i] = seed = seed * 1103515245u + 12345u;
		qsort(values, NR, sizeof(values[0]), cmpfn);
	}
	return values[0];
}

KNOWN static unsigned work(unsigned n)
{
	ENTER();
	return do_qsort() + n;
}

KNOWN static unsigned level2(unsigned n)
{
	volatile char room[200];

	ENTER();
	room[n % sizeof(room)] = 1;
	return work(n + 1) + (unsigned)room[n % sizeof(room)];
}

KNOWN static unsigned level1(unsigned n)
{
	ENTER();
	return level2(n + 1) * 3;
}

int main(int argc, char **argv)
{
	ENTER();
	known_start(argv[1]);
	sink += level1((unsigned)argc);
	return 0;
}
