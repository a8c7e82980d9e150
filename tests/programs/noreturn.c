// SPDX-License-Identifier: Apache-2.0
/* noreturn SECONDS KIND: main > outer > dies_KIND > spin. The call of `spin` is the last instruction of dies_KIND, so its return address
 * is the start of the next function, which has another frame or none. Must be built without call frame information and in this source
 * order. KIND is what follows:
 *   leaf      a function without a frame
 *   branchy   one that sets up its frame behind a test
 *   pushes    one that sets up its frame at once
 *   cold      the cold part of one with a larger frame, which jumps back into it
 *   narrow    ... with a smaller one
 *   framed    ... with a frame pointer
 * The stack's old contents are return addresses, as many calls leave them. */
#include <alloca.h>
#include <stdint.h>

#include "known.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static volatile unsigned long sink;
static volatile unsigned never;

KNOWN static void count(void)
{
	sink++;
}

__attribute__((noinline, noclone, cold)) static void warn(void)
{
	sink--;
}

/* It can return, so its own frame is known; the compiler of its callers does not know that. */
KNOWN void spin(void)
{
	known_enter("spin");
	known_print();
	known_ready();
	sink = known_spin();
	raise(SIGKILL);
}

void die(void) __asm__("spin") __attribute__((noreturn));

KNOWN static unsigned long fill(void)
{
	volatile uintptr_t words[512];

	for (int i = 0; i < 512; i++)
		words[i] = (uintptr_t)__builtin_return_address(0);
	return words[never];
}

KNOWN static void stir(void)
{
	sink = fill();
}

/* A function with a frame of `bytes`, which keeps the old contents of the stack. */
#define DIES(name, bytes) \
	KNOWN __attribute__((noreturn)) static void dies_##name(void) \
	{ \
		volatile char room[bytes]; \
\
		known_enter("dies_" #name); \
		sink = (uintptr_t)&room[never]; \
		die(); \
	}

/* The same in a cold part. The hot part continues at code that is never reached. */
#define DIES_COLD(name, bytes) \
	KNOWN static unsigned long dies_##name(unsigned is_dying) \
	{ \
		volatile char room[bytes]; \
\
		room[never] = 1; \
		if (UNLIKELY(is_dying)) { \
			known_enter("dies_" #name ".cold"); \
			warn(); \
			die(); \
		} \
		sink += is_dying; \
		return (unsigned long)room[never] + sink; \
	}

#define WARNS(name, bytes, make_room) \
	KNOWN static unsigned long after_##name(unsigned long n) \
	{ \
		volatile char *room = make_room(bytes); \
\
		room[never] = 1; \
		if (UNLIKELY(n == 77)) \
			warn(); \
		sink += n; \
		return (unsigned long)room[never] + n; \
	}
#define FIXED(bytes) (char[bytes]){0}
#define BY_SIZE(bytes) alloca((bytes) + n)

DIES(leaf, 40)
KNOWN static unsigned long after_leaf(unsigned long n)
{
	return n * 3 + 1;
}

DIES(branchy, 40)
KNOWN static unsigned long after_branchy(unsigned long n)
{
	if (n < 10)
		return n;
	count();
	count();
	return n * sink;
}

DIES(pushes, 40)
KNOWN static unsigned long after_pushes(unsigned long n)
{
	volatile char room[100];

	room[n & 63] = 1;
	count();
	return n * sink + (unsigned long)room[3];
}

DIES_COLD(cold, 24)
WARNS(cold, 200, FIXED)
DIES_COLD(narrow, 200)
WARNS(narrow, 24, FIXED)
DIES_COLD(framed, 200)
WARNS(framed, 24, BY_SIZE)

KNOWN static unsigned long outer(char kind)
{
	volatile char room[65];

	ENTER();
	room[7] = 1;
	stir();
	if (kind == 'l')
		dies_leaf();
	if (kind == 'b')
		dies_branchy();
	if (kind == 'p')
		dies_pushes();
	sink = kind == 'c' ? dies_cold(1) : kind == 'n' ? dies_narrow(1) : dies_framed(1);
	sink =
	    after_leaf(never) + after_branchy(never) + after_pushes(never) + after_cold(never) + after_narrow(never) + after_framed(never);
	return (unsigned long)room[7];
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	ENTER();
	known_start(argv[1]);
	sink = outer(argv[2][0]);
	return 0;
}
