// SPDX-License-Identifier: Apache-2.0
/* jumps SECONDS: main > outer > jump_loop calls itself down 6 deep() and longjmps back from the bottom, again and again. */
#include <setjmp.h>

#include "known.h"

static jmp_buf up;
static volatile unsigned long sink;

KNOWN static unsigned long bottom(unsigned long state)
{
	for (unsigned i = 0; i < 200; i++) {
		state ^= state << 13;
		state ^= state >> 7;
	}
	sink = state;
	longjmp(up, 1);
}

KNOWN static unsigned long deep(unsigned n, unsigned long state)
{
	volatile unsigned char room[32];

	room[state % 32] = (unsigned char)n;
	return (n ? deep(n - 1, state * 3) : bottom(state)) + room[state % 32];
}

KNOWN static unsigned long jump_loop(void)
{
	volatile unsigned long nr = 1;

	ENTER();
	known_print();
	known_ready();
	while (!known_done)
		if (!setjmp(up))
			sink = deep(5, nr++);
	return nr;
}

KNOWN static unsigned long outer(void)
{
	volatile char room[50];

	ENTER();
	room[3] = 1;
	return jump_loop() + (unsigned)room[3];
}

int main(int argc, char **argv)
{
	(void)argc;
	ENTER();
	known_start(argv[1]);
	sink = outer();
	return 0;
}
