/* SPDX-License-Identifier: Apache-2.0 */
/* paths DEPTH: sleeps once at the end of each of the 2^DEPTH paths through `left` and `right`, which call each other. Each path is a
 * different stack. */
#include <stdlib.h>
#include <time.h>

#define KNOWN __attribute__((noipa))

KNOWN static void left(unsigned path, unsigned depth);
KNOWN static void right(unsigned path, unsigned depth);

static void go_on(unsigned path, unsigned depth)
{
	const struct timespec shortest = { 0, 1 };

	if (!depth)
		nanosleep(&shortest, NULL);
	else if (path & 1)
		right(path >> 1, depth - 1);
	else
		left(path >> 1, depth - 1);
}

static void left(unsigned path, unsigned depth)
{
	go_on(path, depth);
	__asm__ volatile(""); /* no tail call */
}

static void right(unsigned path, unsigned depth)
{
	go_on(path, depth);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	unsigned depth = argc > 1 ? (unsigned)atoi(argv[1]) : 15;

	for (unsigned path = 0; path < 1u << depth; path++)
		go_on(path, depth);
	return 0;
}
