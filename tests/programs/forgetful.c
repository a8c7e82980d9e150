// SPDX-License-Identifier: Apache-2.0
/* A program that uses the library and does not call sonde_is_worker in main. It reads `recording.data`, a recording of perf's. For this
 * sonde starts the program again, and the new process does the same again. Each process reports its generation and its result. Fuses
 * (fuses.h) limit it; without them it does nothing and exits with 77. */
#include <stdio.h>

#include <sonde/sonde.h>

#include "fuses.h"

#define TOLD_FD 40 /* of all processes: a helper has no stdout */

static int read_recording(void)
{
	struct sonde_profile *profile = sonde_profile_new();
	int err = sonde_profile_read(profile, "recording.data", NULL);

	dprintf(TOLD_FD, "%u %d %s\n", fuse_generation(), err, err ? sonde_profile_error(profile) : "");
	sonde_profile_free(profile);
	return 0;
}

int main(void)
{
	if (fuse_count_generation())
		return read_recording();
	return fuse_shut_in() && dup2(STDOUT_FILENO, TOLD_FD) == TOLD_FD ? read_recording() : 77;
}
