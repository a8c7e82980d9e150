/* SPDX-License-Identifier: Apache-2.0 */
/* clock: times in nanoseconds; the clock that the kernel side stamps with. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

/* Of a time before 1970: the negative number, as an int64_t. */
static inline uint64_t clock_timespec_ns(struct timespec time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* 0 when there is no such clock (any more): a process's may have gone with it. */
static inline uint64_t clock_of_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return clock_timespec_ns(now);
}

static inline uint64_t clock_ns(void)
{
	return clock_of_ns(CLOCK_MONOTONIC);
}

/* Has the time come? *at_ns may be written by any thread and by signal handlers; it is 0, or at_ns NULL: never. */
static inline bool clock_is_past(const uint64_t *at_ns)
{
	uint64_t ns = at_ns ? __atomic_load_n(at_ns, __ATOMIC_RELAXED) : 0;

	return ns && clock_ns() >= ns;
}

/* What makes its times those since 1970, as the two clocks stand now: of a few readings the one with the least time between, as others may
 * run in the middle of one. */
static inline uint64_t clock_unix_offset_ns(void)
{
	uint64_t least_ns = UINT64_MAX, offset_ns = 0;

	for (int i = 0; i < 16; i++) {
		uint64_t before_ns = clock_ns(), unix_ns = clock_of_ns(CLOCK_REALTIME), took_ns = clock_ns() - before_ns;

		if (took_ns < least_ns) {
			least_ns = took_ns;
			offset_ns = unix_ns - before_ns - took_ns / 2;
		}
	}
	return offset_ns;
}
