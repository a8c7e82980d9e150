// SPDX-License-Identifier: Apache-2.0
/* tails SECONDS: main > outer > first, which jumps to second, which jumps to third, which calls inner, which jumps to leaf. A function
 * left by a jump has no frame on the stack, so the printed chain is main > outer > third > leaf. Built with -foptimize-sibling-calls. */
#include "known.h"

static volatile unsigned long sink;

KNOWN static unsigned long leaf(unsigned long n)
{
	ENTER();
	known_print();
	known_ready();
	return known_spin() + n;
}

KNOWN static unsigned long inner(unsigned long n)
{
	unsigned long (*volatile jump)(unsigned long) = leaf;

	return jump(n * 3);
}

KNOWN static unsigned long third(unsigned long n)
{
	volatile unsigned char room[40];

	ENTER();
	room[n % 40] = 1;
	return inner(n) + room[n % 40];
}

KNOWN static unsigned long second(unsigned long n)
{
	return third(n + 1);
}

KNOWN static unsigned long first(unsigned long n)
{
	unsigned long a = n * 3, b = n * 5;

	__asm__ volatile("" : "+r"(a), "+r"(b));
	sink = a ^ b;
	return second(a);
}

KNOWN static unsigned long outer(unsigned long n)
{
	ENTER();
	return first(n) + 1;
}

int main(int argc, char **argv)
{
	ENTER();
	known_start(argv[1]);
	sink = outer((unsigned long)argc);
	return 0;
}
