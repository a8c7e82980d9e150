// SPDX-License-Identifier: Apache-2.0
/* dumper SECONDS MEBIBYTES: main > fills > breaks, which writes to an unmapped address and dies. The kernel then writes a core dump in
 * the thread that crashed, which takes a while. */
#include <sys/resource.h>

#include "known.h"

static volatile unsigned sink;
static volatile char *volatile nowhere;

KNOWN static unsigned breaks(char *memory)
{
	ENTER();
	known_print();
	known_ready();
	*nowhere = memory[0];
	return 1;
}

KNOWN static unsigned fills(size_t bytes)
{
	char *memory = malloc(bytes);

	ENTER();
	if (!memory)
		exit(2);
	memset(memory, 1, bytes);
	return breaks(memory) + 1;
}

int main(int argc, char **argv)
{
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};

	ENTER();
	if (argc < 3 || setrlimit(RLIMIT_CORE, &all))
		return 2;
	known_start(argv[1]);
	sink = fills((size_t)atol(argv[2]) << 20);
	return 0;
}
