/* SPDX-License-Identifier: Apache-2.0 */
/* priority: how soon a thread gets a CPU that others want, too. */
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

/* The calling thread's nice value. */
static inline int priority_nice(void)
{
	return getpriority(PRIO_PROCESS, 0); /* it fails for nobody, and -1 is a value */
}

/* Of a thread, 0: the calling one. Where that is not allowed it stays as it is. */
static inline void priority_set(pid_t tid, int nice)
{
	if (setpriority(PRIO_PROCESS, (id_t)tid, nice))
		return;
}
