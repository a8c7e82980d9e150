// SPDX-License-Identifier: Apache-2.0
#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>


/* The user's own. NULL: none is named. */
static const char *named_pager(void)
{
	const char *pager = getenv("SONDE_PAGER");

	return pager ? pager : getenv("PAGER");
}

/* Starts it with the pipe as its input. A named one may have arguments. Returns its pid, or 0. */
static pid_t spawn(const char *named, int input)
{
	char *const less[] = { "less", NULL }, *const shell[] = { "sh", "-c", (char *)(uintptr_t)named, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid = 0;

	if (posix_spawn_file_actions_init(&actions))
		return 0;
	if (posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO) ||
	    (named ? posix_spawn(&pid, "/bin/sh", &actions, NULL, shell, environ)
		   : posix_spawnp(&pid, "less", &actions, NULL, less, environ)))
		pid = 0;
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

struct pager pager_start(void)
{
	const char *named = named_pager(), *term = getenv("TERM");
	struct pager pager = { 0 };
	int ends[2];

	if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb") || (named && (!*named || !strcmp(named, "cat"))) ||
	    pipe2(ends, O_CLOEXEC))
		return pager;
	setenv("LESS", "FRX", 0); /* ends by itself if all fits, shows colours, leaves the text there */
	pager.pid = spawn(named, ends[0]);
	if (pager.pid && dup2(ends[1], STDOUT_FILENO) < 0)
		pager.pid = 0; /* it ends, as nothing comes */
	if (pager.pid)
		signal(SIGPIPE, SIG_DFL); /* the user has seen enough */
	close(ends[0]);
	close(ends[1]);
	return pager;
}

void pager_wait(const struct pager *pager)
{
	if (!pager->pid)
		return;
	close(STDOUT_FILENO);
	while (waitpid(pager->pid, NULL, 0) < 0 && errno == EINTR)
		;
}
