/* SPDX-License-Identifier: Apache-2.0 */
/* clock: times in nanoseconds, and the clock of the kernel side's timestamps. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

/* A time before 1970 gives the negative number, as an int64_t. */
static inline uint64_t clock_timespec_ns(struct timespec time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* Returns 0 if the clock does not exist, such as that of an ended process. */
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

/* True if the time *at_ns has passed; never if at_ns is NULL or *at_ns is 0. *at_ns may be written by any thread and by signal handlers. */
static inline bool clock_is_past(const uint64_t *at_ns)
{
	uint64_t ns = at_ns ? __atomic_load_n(at_ns, __ATOMIC_RELAXED) : 0;

	return ns && clock_ns() >= ns;
}

/* What to add to clock_ns() to get the time since 1970. Takes the reading that took the shortest of 16, as a reading may be interrupted. */
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
