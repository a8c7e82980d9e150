// SPDX-License-Identifier: Apache-2.0
/* syscalls SECONDS: main > k1 > k2 > reader, which reads /dev/zero all the time: nearly every sample is in the kernel, under libc's
 * read. The printed chain ends with reader. */
#include <fcntl.h>

#include "known.h"

static volatile unsigned sink;
static char block[256 * 1024];

KNOWN static unsigned reader(int fd)
{
	unsigned sum = 0;

	ENTER();
	known_print();
	known_ready();
	while (!known_done)
		sum += (unsigned)read(fd, block, sizeof(block));
	return sum;
}

KNOWN static unsigned k2(int fd)
{
	ENTER();
	return reader(fd) + 1;
}

KNOWN static unsigned k1(int fd)
{
	ENTER();
	return k2(fd) + 2;
}

int main(int argc, char **argv)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)argc;
	ENTER();
	known_start(argv[1]);
	sink = k1(fd);
	return 0;
}
