/* SPDX-License-Identifier: Apache-2.0 */
/* cache_dir: a private directory (mode 0700) of files that may be removed at any time. Its size is bounded: the least recently used files
 * (by modification time) go first. One thread; several programs may use a directory at once. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct cache_dir_options { /* texts are borrowed for the directory's life */
	/* NULL: `folder` in $SONDE_CACHE_DIR; else in /var/cache/sonde for root, in $XDG_CACHE_HOME/sonde or ~/.cache/sonde for others. */
	const char *path;
	const char *folder;
	const char *what;       /* for messages: "unwind tables" */
	const char *suffix;     /* of the files that count */
	const char *passing;    /* suffix of files that are removed when older than passing_s */
	int64_t passing_s;
	uint64_t max_bytes;
};

struct cache_dir {
	struct cache_dir_options options;
	int fd;                 /* of the directory */
	uint64_t bytes;         /* of the files that count, as far as known */
};

/* Creates the directory if it is missing, and bounds it. 0; -EPERM: others have access to it; or another negative errno. On failure
 * ret_dir->fd is -1. */
MUST_CHECK int cache_dir_open(const struct cache_dir_options *options, struct diag *diag, struct cache_dir *ret_dir);
void cache_dir_close(struct cache_dir *dir);
/* Adds a new file's size, and bounds the directory if it is too large. */
void cache_dir_grew(struct cache_dir *dir, uint64_t bytes);
