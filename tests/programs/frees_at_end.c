// SPDX-License-Identifier: Apache-2.0
/* Holds 100 blocks of 1,000 bytes until SIGTERM or SIGINT, then frees them. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 100 };

static volatile sig_atomic_t is_over;

static void end(int number)
{
	(void)number;
	is_over = 1;
}

int main(void)
{
	void *blocks[BLOCKS];

	signal(SIGTERM, end);
	signal(SIGINT, end);
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = malloc(1000);
	while (!is_over)
		usleep(10000);
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return 0;
}
