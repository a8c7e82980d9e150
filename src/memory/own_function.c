// SPDX-License-Identifier: Apache-2.0
#include "memory/own_function.h"

#include <inttypes.h>
#include <stdio.h>

__attribute__((naked, noinline, used)) void own_function(void)
{
#ifdef __x86_64__
	__asm__("push %rbp\n\tpop %rbp\n\tret"); /* as most functions begin */
#else
	__asm__("nop\n\tret");
#endif
}

uint64_t own_function_off(void)
{
	uint64_t pc = (uint64_t)(uintptr_t)own_function, start, end, off;
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t found = 0;
	char line[512];

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &off) == 3 && pc >= start && pc < end)
			found = pc - start + off;
	}
	if (maps)
		fclose(maps);
	return found;
}
