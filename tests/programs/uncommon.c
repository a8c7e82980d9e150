// SPDX-License-Identifier: Apache-2.0
/* uncommon SECONDS: main, then functions with frame sizes that no other program has. Unwind rules loaded for other files do not fit
 * them. */
#include "known.h"

static volatile unsigned long sink;

KNOWN static unsigned long leaf(void)
{
	unsigned long state;

	ENTER();
	known_print();
	known_ready();
	state = known_spin();
	sink = state;
	return state;
}

#define STEP(name, next, bytes) \
	KNOWN static unsigned long name(unsigned long seed) \
	{ \
		volatile unsigned char room[bytes]; \
		unsigned long value; \
		ENTER(); \
		room[seed % (bytes)] = 1; \
		value = next(seed + 1); \
		return value + room[value % (bytes)]; \
	}
#define LEAF(seed) leaf()

STEP(d, LEAF, 10968)
STEP(c, d, 12344)
STEP(b, c, 13720)
STEP(a, b, 15096)

int main(int argc, char **argv)
{
	ENTER();
	known_start(argv[1]);
	sink += a((unsigned long)argc);
	return 0;
}
