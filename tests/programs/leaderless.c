// SPDX-License-Identifier: Apache-2.0
/* Its first thread ends SECONDS after the start; another one goes on.
 *   leaderless SECONDS */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *spin(void *arg)
{
	for (volatile unsigned long i = 0;; i++)
		;
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2 || pthread_create(&thread, NULL, spin, NULL))
		return 1;
	sleep((unsigned)atoi(argv[1]));
	pthread_exit(NULL);
}
