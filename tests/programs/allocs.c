// SPDX-License-Identifier: Apache-2.0
/* Allocates blocks of some sizes, always the same ones, frees most of them, and prints "alloc FUNCTION COUNT BYTES KEPT" for each function
 * that asked. It uses no stdio, so that all blocks are its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASK(name, bytes) \
	static __attribute__((noipa)) void *name(void) \
	{ \
		void *volatile block = malloc(bytes); \
\
		return block; \
	}

/* Number of blocks, and of those that are kept. */
#define ASKED(X) \
	X(ask_tiny, 24, 40000, 500) X(ask_small, 300, 40000, 100) X(ask_page, 5000, 4000, 50) X(ask_large, 100000, 300, 3) \
	    X(ask_none, 0, 10, 0)

#define X(name, bytes, nr, kept) ASK(name, bytes)
ASKED(X)
#undef X

static __attribute__((noipa)) void *grow(void *block, size_t bytes)
{
	void *volatile moved = realloc(block, bytes);

	return moved;
}

static void allocate(void *(*ask)(void), int nr, int kept)
{
	for (int i = 0; i < nr; i++) {
		void *block = ask();

		if (i >= kept)
			free(block);
	}
}

static void say(const char *name, long nr, long bytes, long kept)
{
	char line[128];
	int size = snprintf(line, sizeof(line), "alloc %s %ld %ld %ld\n", name, nr, nr * bytes, kept);

	if (write(1, line, (size_t)size) != size)
		_exit(1);
}

int main(void)
{
	void *block = NULL;

#define X(name, bytes, nr, kept) allocate(name, nr, kept);
	ASKED(X)
#undef X
	for (size_t bytes = 1; bytes <= 1000; bytes++)
		block = grow(block, bytes * 100);
	free(block);
#define X(name, bytes, nr, kept) say(#name, nr, bytes, kept);
	ASKED(X)
#undef X
	say("grow", 1000, 50050, 0); /* in the mean */
	return 0;
}
