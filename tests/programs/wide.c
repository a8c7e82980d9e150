// SPDX-License-Identifier: Apache-2.0
/* wide SECONDS DEPTH: main, then DEPTH functions with frames of 30 to 190 bytes that call each other in random order, then the leaf. In
 * this one stack addresses repeat, but no sequence of them does. */
#include "known.h"

static volatile unsigned long sink;

KNOWN static unsigned long leaf(void)
{
	ENTER();
	known_print();
	known_ready();
	return known_spin();
}

typedef unsigned long (*step_fn)(unsigned depth, unsigned long seed);
static const step_fn steps[8];

#define STEP(i, bytes) \
	KNOWN static unsigned long w##i(unsigned depth, unsigned long seed) \
	{ \
		volatile unsigned char room[bytes]; \
		unsigned long value; \
		ENTER(); \
		room[seed % (bytes)] = (unsigned char)depth; \
		value = depth ? steps[seed >> 33 & 7](depth - 1, seed * 6364136223846793005UL + 1442695040888963407UL) : leaf(); \
		return value * 31 + room[depth % (bytes)]; \
	}

STEP(0, 8)
STEP(1, 24)
STEP(2, 40)
STEP(3, 56)
STEP(4, 80)
STEP(5, 104)
STEP(6, 128)
STEP(7, 152)

static const step_fn steps[8] = {w0, w1, w2, w3, w4, w5, w6, w7};

int main(int argc, char **argv)
{
	unsigned depth = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10;

	ENTER();
	known_start(argv[1]);
	sink += depth ? w0(depth - 1, 42) : leaf();
	return 0;
}
