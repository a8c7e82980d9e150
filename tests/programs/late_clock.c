// SPDX-License-Identifier: Apache-2.0
/* Preloaded, it shows a CLOCK_REALTIME that is one hour ahead while the file exists that LATE_CLOCK names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*real)(clockid_t clock, struct timespec *time);
	const char *path = getenv("LATE_CLOCK");
	int err;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	err = real(clock, time);
	if (!err && clock == CLOCK_REALTIME && path && !access(path, F_OK))
		time->tv_sec += 3600;
	return err;
}
