/* SPDX-License-Identifier: Apache-2.0 */
/* fuses: for programs that could deliberately start processes without end. Two fuses limit them: a user of their own who may have only a
 * few processes, and a count of generations in a resource limit, which every process inherits whatever it does to its environment. */
#pragma once
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUSE_UID 65600          /* no account has it */
#define FUSE_PROCESSES 12
#define FUSE_NEEDED 4           /* root's limits belong to its own user; other users share theirs with all their processes */
#define FUSE_COUNT RLIMIT_MSGQUEUE /* nobody here has message queues: the soft limit counts generations */
#define FUSE_FULL 1000u
#define FUSE_GENERATIONS 3u

static inline uint32_t fuse_generation(void)
{
	struct rlimit limit;

	return getrlimit(FUSE_COUNT, &limit) ? FUSE_FULL : (uint32_t)(FUSE_FULL - limit.rlim_cur);
}

/* Must be called first. True: this process descends from a limited one. The last generation exits here. */
static inline bool fuse_count_generation(void)
{
	struct rlimit limit;

	if (getrlimit(FUSE_COUNT, &limit))
		_exit(1);
	if (limit.rlim_max != FUSE_FULL)
		return false;
	limit.rlim_cur--;
	if (setrlimit(FUSE_COUNT, &limit) || fuse_generation() > FUSE_GENERATIONS)
		_exit(1);
	return true;
}

/* True if the process limit refuses a fork, but allows the few that are needed. */
static inline bool fuse_holds(void)
{
	pid_t children[FUSE_PROCESSES + 1];
	int nr = 0, status;
	bool holds = false;

	while (nr <= FUSE_PROCESSES && !holds) {
		pid_t pid = fork();

		if (!pid) {
			pause();
			_exit(0);
		}
		holds = pid < 0 && errno == EAGAIN;
		if (pid > 0)
			children[nr++] = pid;
	}
	holds &= nr >= FUSE_NEEDED;
	while (nr) {
		kill(children[--nr], SIGKILL);
		waitpid(children[nr], &status, 0);
	}
	return holds;
}

/* Sets both fuses. False: not both are in place, and the caller must do nothing. */
static inline bool fuse_shut_in(void)
{
	const struct rlimit processes = { FUSE_PROCESSES, FUSE_PROCESSES }, count = { FUSE_FULL, FUSE_FULL };

	if (!geteuid() && (setgroups(0, NULL) || setresgid(FUSE_UID, FUSE_UID, FUSE_UID) || setresuid(FUSE_UID, FUSE_UID, FUSE_UID)))
		return false;
	return !setrlimit(RLIMIT_NPROC, &processes) && !setrlimit(FUSE_COUNT, &count) && fuse_holds();
}
