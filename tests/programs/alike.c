// SPDX-License-Identifier: Apache-2.0
/* alike SECONDS: alternates between work in NAME_hot and waits in NAME_nap. Builds with different NAMEs of the same length have the same
 * bytes at the same addresses; only the symbol names differ. */
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
