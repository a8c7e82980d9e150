/* SPDX-License-Identifier: Apache-2.0 */
/* sky_program: which program a pid is: from an exec to the next one, or to the end of the process. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/process_stat.h"

struct sky_program {
	uint64_t start_ns; /* of the process, since boot */
	/* Where the program's stack begins: another address after each exec, unless the process has switched that off (personality(2)); and
	 * its file's path, as a hash. 0: not known, as in the middle of an exec; a kernel thread has none. */
	uint64_t stack, path;
	uint32_t thread; /* one that lives: when the first one has ended, /proc/PID shows nothing of the program any more */
};

/* `stat`: of the process. */
void sky_program_of(uint32_t pid, const struct process_stat *stat, struct sky_program *ret_program);
/* False: there is no such process. */
bool sky_program_read(uint32_t pid, struct sky_program *ret_program);
/* False if they are certainly different ones. */
bool sky_program_is(const struct sky_program *a, const struct sky_program *b);
