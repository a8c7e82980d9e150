/* SPDX-License-Identifier: Apache-2.0 */
/* cleanup: scope cleanup by attribute, and explicit moves out of a scope. */
#pragma once
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((__cleanup__(fn)))
#define MOVE(ptr) ({ __typeof__(ptr) moved_ = (ptr); (ptr) = NULL; moved_; })
#define MOVE_FD(fd) ({ int moved_ = (fd); (fd) = -1; moved_; })
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define MUST_CHECK __attribute__((warn_unused_result))

static inline void freep(void *ptr)
{
	free(*(void **)ptr);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}
