/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: cgroups (v2) by path and by id. A cgroup's id is its directory's inode number, and a path here is what stands in
 * /proc/PID/cgroup: without the mount point. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct cgroup {
	uint64_t id;
	uint32_t level; /* in the whole tree, also where we see a part of it: 0 is the root */
};

/* Opens its directory: by its path, with or without the mount point, or its id in digits. 0; -ENOENT: there is none; -EOPNOTSUPP: no cgroup
 * v2 here; -EINVAL; diag says what to do. */
MUST_CHECK int cgroup_open(const char *text, struct diag *diag, int *ret_fd);
/* The same, for the kernel side. -EXDEV: from this namespace it cannot be told how deep it is. */
MUST_CHECK int cgroup_find(const char *text, struct diag *diag, struct cgroup *ret_cgroup);

/* Paths of all cgroups that were there at one of the readings. One thread. */
struct cgroup_paths;
struct cgroup_paths *cgroup_paths_new(void); /* NULL: no memory */
void cgroup_paths_free(struct cgroup_paths *paths); /* takes NULL */
/* Reads the tree once more. 0 or -ENOMEM; without a tree there is nothing to read. */
MUST_CHECK int cgroup_paths_read(struct cgroup_paths *paths);
/* NULL: not known. Borrowed until the next reading. */
const char *cgroup_paths_find(const struct cgroup_paths *paths, uint64_t id);
