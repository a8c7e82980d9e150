// SPDX-License-Identifier: Apache-2.0
#include "memory/own_function.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((naked, noinline, used)) void own_function(void)
{
#ifdef __x86_64__
	__asm__("push %rbp\n\tpop %rbp\n\tret"); /* as most functions begin */
#else
	__asm__("nop\n\tret");
#endif
}

uint64_t own_function_off(char *path, size_t room)
{
	uint64_t pc = (uint64_t)(uintptr_t)own_function, start, end, off;
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t found = 0;
	char line[OWN_FUNCTION_PATH], file[64];
	int name = 0;

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &start, &end, &off, &name) < 3)
			continue;
		if (pc < start || pc >= end)
			continue;
		found = pc - start + off;
		line[strcspn(line, "\n")] = 0;
		snprintf(file, sizeof(file), "/proc/self/map_files/%" PRIx64 "-%" PRIx64, start, end); /* also if replaced */
		snprintf(path, room, "%s", access(file, R_OK) ? line + name : file);
	}
	if (maps)
		fclose(maps);
	return found;
}
