// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_program.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/process_stat.h"

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

bool sky_program_read(uint32_t pid, struct sky_program *ret_program)
{
	struct process_stat stat;

	if (process_stat_read(pid, &stat))
		return false;
	*ret_program = (struct sky_program){ .start = process_stat_number(&stat, PROCESS_STAT_START),
					     .stack = process_stat_number(&stat, PROCESS_STAT_STACK),
					     .thread = pid };
	if (process_stat_char(&stat, PROCESS_STAT_STATE) == 'Z')
		look_at_threads(pid, ret_program);
	return true;
}

bool sky_program_is(const struct sky_program *a, const struct sky_program *b)
{
	return a->start == b->start && (a->stack == b->stack || !a->stack || !b->stack);
}
