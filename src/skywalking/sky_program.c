// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_program.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"

/* Reading the link asks no file system. */
static uint64_t path_of(uint32_t thread)
{
	char link[32], path[PATH_MAX];
	ssize_t size;

	snprintf(link, sizeof(link), "/proc/%" PRIu32 "/exe", thread);
	size = readlink(link, path, sizeof(path));
	return size > 0 ? hash_bytes(path, (size_t)size, 0) | 1 : 0;
}

/* Its first thread has ended: looks at another. */
static void look_at_threads(uint32_t pid, struct sky_program *program)
{
	char path[32];
	CLEANUP(closep) int proc_fd = -1;
	struct process_stat stat;
	uint32_t thread;

	snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
	proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	thread = proc_fd < 0 ? 0 : process_stat_thread(proc_fd);
	if (!thread || process_stat_read(thread, &stat))
		return;
	program->stack = process_stat_number(&stat, PROCESS_STAT_STACK);
	program->thread = thread;
}

void sky_program_of(uint32_t pid, const struct process_stat *stat, struct sky_program *ret_program)
{
	*ret_program = (struct sky_program){ .start_ns = process_stat_ns(stat, PROCESS_STAT_START),
					     .stack = process_stat_number(stat, PROCESS_STAT_STACK),
					     .thread = pid };
	if (process_stat_char(stat, PROCESS_STAT_STATE) == 'Z')
		look_at_threads(pid, ret_program);
	if (ret_program->stack)
		ret_program->path = path_of(ret_program->thread);
}

bool sky_program_read(uint32_t pid, struct sky_program *ret_program)
{
	struct process_stat stat;

	if (process_stat_read(pid, &stat))
		return false;
	sky_program_of(pid, &stat, ret_program);
	return true;
}

bool sky_program_is(const struct sky_program *a, const struct sky_program *b)
{
	return a->start_ns == b->start_ns && (a->stack == b->stack || !a->stack || !b->stack) &&
	       (a->path == b->path || !a->path || !b->path);
}
