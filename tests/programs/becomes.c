// SPDX-License-Identifier: Apache-2.0
/* Spins; at SIGUSR1 it executes the file "bbbb" beside its own, without arguments, so that two such programs with names of one length have
 * equal stacks where the kernel does not place them at random. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t is_over;

static void note(int signo)
{
	is_over = signo;
}

int main(int argc, char **argv)
{
	char path[4096], *arguments[] = { path, NULL };

	if (argc != 1 || strlen(argv[0]) >= sizeof(path) || !strrchr(argv[0], '/'))
		return 1;
	strcpy(path, argv[0]);
	strcpy(strrchr(path, '/'), "/bbbb");
	signal(SIGUSR1, note);
	while (!is_over)
		;
	execv(path, arguments);
	perror(path);
	return 1;
}
