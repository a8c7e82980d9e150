// SPDX-License-Identifier: Apache-2.0
/* chain SECONDS DEPTH: main, then DEPTH functions f0 to f9 in turn, then the leaf. Their frames differ in size and in saved registers.
 * f3 and f7 have a frame pointer in rbp, because their frame size is known only at run time. */
#include <alloca.h>

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

typedef unsigned long (*step_fn)(unsigned depth, unsigned long seed);
static const step_fn steps[10];

/* A single call in each function, so that there is only one chain. */
static inline __attribute__((always_inline)) unsigned long deeper(unsigned next, unsigned depth, unsigned long seed)
{
	unsigned long (*volatile bottom)(void) = leaf;

	return depth ? steps[next](depth - 1, seed + depth) : bottom();
}

#define STEP(i, next, before, after) \
	KNOWN static unsigned long f##i(unsigned depth, unsigned long seed) \
	{ \
		unsigned long value; \
		ENTER(); \
		before; \
		value = deeper(next, depth, seed); \
		after; \
		return value * 31 + i; \
	}
#define BUFFER(bytes) \
	volatile unsigned char room[bytes]; \
	room[seed % (bytes)] = (unsigned char)depth
#define USE_BUFFER value += room[depth % sizeof(room)]
#define REGISTERS \
	unsigned long a = seed * 3, b = seed * 5, c = seed * 7, d = seed * 11; \
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d))
#define USE_REGISTERS value += a ^ b ^ c ^ d
#define DYNAMIC \
	volatile unsigned char *room = alloca(16 + (seed & 15)); \
	room[seed & 15] = (unsigned char)depth

STEP(0, 1, , )
STEP(1, 2, BUFFER(24), USE_BUFFER)
STEP(2, 3, REGISTERS, USE_REGISTERS)
STEP(3, 4, DYNAMIC, value += room[depth & 15])
STEP(4, 5, BUFFER(120), USE_BUFFER)
STEP(5, 6, , )
STEP(6, 7, REGISTERS; BUFFER(40), USE_REGISTERS; USE_BUFFER)
STEP(7, 8, DYNAMIC, value += room[depth & 15])
STEP(8, 9, REGISTERS, USE_REGISTERS)
STEP(9, 0, BUFFER(8), USE_BUFFER)

static const step_fn steps[10] = {f0, f1, f2, f3, f4, f5, f6, f7, f8, f9};

int main(int argc, char **argv)
{
	unsigned depth = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10;

	ENTER();
	known_start(argv[1]);
	sink += depth ? f0(depth - 1, (unsigned long)argc) : leaf();
	return 0;
}
