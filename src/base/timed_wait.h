/* SPDX-License-Identifier: Apache-2.0 */
/* timed_wait: waits of threads with a limit by CLOCK_MONOTONIC (clock_ns), so whoever sets the clock does not change how long they last. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"

static inline struct timespec timed_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
}

/* For timed_cond_wait. */
static inline void timed_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* Returns also without a signal, as pthread_cond_wait does: the caller looks why. */
static inline void timed_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
	const struct timespec until = timed_timespec(until_ns);

	pthread_cond_timedwait(cond, lock, &until);
}

/* False: the time is over, and the thread is not. */
static inline bool timed_join(pthread_t thread, uint64_t until_ns)
{
	const struct timespec until = timed_timespec(until_ns);

	return !pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
}
