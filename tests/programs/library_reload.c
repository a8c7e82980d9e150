// SPDX-License-Identifier: Apache-2.0
/* What `reload` opens: COLOUR (red, blue) selects one of two libraries of the same size, whose functions and frames at the same
 * addresses differ in size. */
#include "known.h"

#define NAMED2(colour, name) colour##_##name
#define NAMED1(colour, name) NAMED2(colour, name)
#define NAMED(name) NAMED1(COLOUR, name)

KNOWN static unsigned long NAMED(leaf)(volatile sig_atomic_t *done)
{
	unsigned long state = 88172645463325252UL;

	while (!*done) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	return state;
}

KNOWN static unsigned long NAMED(middle)(unsigned long n, volatile sig_atomic_t *done)
{
	volatile unsigned char room[ROOM];
	unsigned long value;

	room[n % ROOM] = 1;
#if ROOM > 100 /* other code before the call, so that the return addresses differ */
	__asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop" ::: "rbx", "r12", "r13");
#endif
	value = NAMED(leaf)(done);
	return value + room[n % ROOM];
}

unsigned long reload_entry(unsigned long n, volatile sig_atomic_t *done);
unsigned long reload_entry(unsigned long n, volatile sig_atomic_t *done)
{
	volatile unsigned char room[300 - ROOM];

	room[n % (300 - ROOM)] = 1;
	return NAMED(middle)(n + 1, done) + room[n % (300 - ROOM)];
}
