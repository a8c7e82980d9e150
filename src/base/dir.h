/* SPDX-License-Identifier: Apache-2.0 */
/* dir: directories that are read to their end, or not. */
#pragma once
#include <dirent.h>
#include <errno.h>

/* NULL at the end; and when it cannot be read, which is in *err then, a negative errno. *err is 0 before. */
static inline const struct dirent *dir_next(DIR *dir, int *err)
{
	const struct dirent *entry;

	errno = 0;
	entry = readdir(dir);
	if (!entry)
		*err = -errno;
	return entry;
}
