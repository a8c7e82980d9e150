/* SPDX-License-Identifier: Apache-2.0 */
/* clock: the clock that the kernel side stamps with. */
#pragma once
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What makes its times those since 1970, as the two clocks stand now. */
static inline uint64_t clock_unix_offset_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - clock_ns();
}
