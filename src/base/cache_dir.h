/* SPDX-License-Identifier: Apache-2.0 */
/* cache_dir: a directory that is ours alone (mode 0700), with files that may go at any time, bounded in bytes: those that were not used
 * longest (by their time of change) go first. One thread; several programs may use a directory at once. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct cache_dir_options { /* texts are borrowed for the directory's life */
	const char *path; /* NULL: folder in $SONDE_CACHE_DIR; else in /var/cache/sonde for root, and for others in $XDG_CACHE_HOME/sonde or
			     ~/.cache/sonde */
	const char *folder;
	const char *what;       /* for messages: "unwind tables" */
	const char *suffix;     /* of the files that count */
	const char *passing;    /* suffix of files that go when they are older than passing_s */
	int64_t passing_s;
	uint64_t max_bytes;
};

struct cache_dir {
	struct cache_dir_options options;
	int fd;                 /* of the directory */
	uint64_t bytes;         /* of the files that count, as far as is known */
};

/* Makes the directory where it is missing, and bounds it. 0; -EPERM: it is not ours alone; or what the system gave: then ret_dir->fd is -1.
 */
MUST_CHECK int cache_dir_open(const struct cache_dir_options *options, struct diag *diag, struct cache_dir *ret_dir);
void cache_dir_close(struct cache_dir *dir);
/* A file came that has so many bytes. */
void cache_dir_grew(struct cache_dir *dir, uint64_t bytes);
