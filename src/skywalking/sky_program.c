// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_program.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/dir.h"
#include "base/number.h"
#include "base/process_stat.h"

static void look_at_threads(uint32_t pid, struct sky_program *program)
{
	char path[32];
	CLEANUP(closedirp) DIR *threads = NULL;
	const struct dirent *entry;
	int err;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
	threads = opendir(path);
	while (!program->stack && threads && (entry = dir_next(threads, &err))) {
		struct process_stat stat;
		uint64_t tid;

		if (number_u64(entry->d_name, INT32_MAX, &tid) || process_stat_read((uint32_t)tid, &stat))
			continue;
		program->stack = process_stat_number(&stat, PROCESS_STAT_STACK);
		program->thread = (uint32_t)tid;
	}
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
