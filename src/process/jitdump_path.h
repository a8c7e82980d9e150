/* SPDX-License-Identifier: Apache-2.0 */
/* jitdump_path: jit-PID.dump, in any directory, where PID is the process's number in its own pid namespace. */
#pragma once
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Is this the path of the jitdump of a process whose own number is `number`? */
static inline bool jitdump_path_is_of(const char *path, uint32_t number)
{
	const char *slash = strrchr(path, '/');
	char name[32];

	snprintf(name, sizeof(name), "jit-%" PRIu32 ".dump", number);
	return slash && strcmp(slash + 1, name) == 0;
}
