// SPDX-License-Identifier: Apache-2.0
/* alike SECONDS: works in NAME_hot and waits in NAME_nap, by turns. Programs built of this with another NAME of the same length are the
 * same bytes at the same addresses, but for the names. */
#include <stdlib.h>
#include <time.h>

#include "known.h"

#define JOINED(name, part) name##part
#define FUNCTION(name, part) JOINED(name, part)

static volatile unsigned long sink;

KNOWN static void FUNCTION(NAME, _hot)(void)
{
	unsigned long state = 88172645463325252UL;

	for (int i = 0; i < 1000000; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	sink = state;
}

KNOWN static int FUNCTION(NAME, _nap)(void)
{
	struct timespec time = {0, 1000000};

	return nanosleep(&time, NULL) + 1; /* no tail call */
}

int main(int argc, char **argv)
{
	known_start(argc > 1 ? argv[1] : NULL);
	known_ready();
	while (!known_done) {
		FUNCTION(NAME, _hot)();
		FUNCTION(NAME, _nap)();
	}
	return 0;
}
