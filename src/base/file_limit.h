/* SPDX-License-Identifier: Apache-2.0 */
/* file_limit: how many files this process may have open. */
#pragma once
#include <sys/resource.h>

/* As many as may be asked for. Where that fails it stays as it is; who opens files finds out. A program that was started before keeps its
 * own. */
static inline void file_limit_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return;
}
