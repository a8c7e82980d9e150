/* SPDX-License-Identifier: Apache-2.0 */
/* priority: nice values of threads. */
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

/* The calling thread's nice value. */
static inline int priority_nice(void)
{
	return getpriority(PRIO_PROCESS, 0); /* it does not fail here, and -1 is a valid result */
}

/* Sets a thread's nice value; tid 0: the calling thread. Without permission it stays unchanged. */
static inline void priority_set(pid_t tid, int nice)
{
	if (setpriority(PRIO_PROCESS, (id_t)tid, nice))
		return;
}
