/* SPDX-License-Identifier: Apache-2.0 */
/* dir: reads directories and tells the end from an error. */
#pragma once
#include <dirent.h>
#include <errno.h>

/* Returns NULL at the end, with *err 0, and on an error, with a negative errno in *err. */
static inline const struct dirent *dir_next(DIR *dir, int *err)
{
	const struct dirent *entry;

	errno = 0;
	entry = readdir(dir);
	if (!entry)
		*err = -errno;
	return entry;
}
