/* SPDX-License-Identifier: Apache-2.0 */
/* file_limit: the number of files this process may have open. */
#pragma once
#include <sys/resource.h>

/* Raises the limit as far as allowed. On failure it stays unchanged, and opening files fails later. Programs started before keep theirs. */
static inline void file_limit_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return;
}
