/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup: cgroups (v2) by path and by id. A cgroup's id is the inode number of its directory. Paths here are as in /proc/PID/cgroup,
 * without the mount point. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct cgroup {
	uint64_t id;
	uint32_t level; /* depth in the whole tree, even if we see only a part; the root is 0 */
};

/* Opens a cgroup's directory, by its path (with or without the mount point) or its id in digits. 0; -ENOENT: there is none; -EOPNOTSUPP:
 * cgroup v2 is not mounted; -EINVAL; diag says what to do. */
MUST_CHECK int cgroup_open(const char *text, struct diag *diag, int *ret_fd);
/* Finds id and level, for the kernel side. Errors as above, and -EXDEV: the level is not known from this namespace. */
MUST_CHECK int cgroup_find(const char *text, struct diag *diag, struct cgroup *ret_cgroup);

/* Paths of all cgroups that existed at one of the readings. One thread. */
struct cgroup_paths;
struct cgroup_paths *cgroup_paths_new(void); /* NULL: no memory */
void cgroup_paths_free(struct cgroup_paths *paths); /* takes NULL */
/* Reads the tree again. 0 or -ENOMEM; if there is no tree, it reads nothing. */
MUST_CHECK int cgroup_paths_read(struct cgroup_paths *paths);
/* NULL: unknown id. Borrowed until the next reading. */
const char *cgroup_paths_find(const struct cgroup_paths *paths, uint64_t id);
