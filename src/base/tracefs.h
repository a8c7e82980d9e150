/* SPDX-License-Identifier: Apache-2.0 */
/* tracefs: where the kernel lists its tracepoints and their numbers. If it is not mounted, sonde mounts it for itself: that mount is in no
 * directory tree, nobody else sees it, and it ends with its descriptor. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* Opens a directory that has "events" in it; the caller closes it.
 * *ret_where: where it is, in words. -EACCES, -EPERM: not permitted; -ENODEV: this kernel has no tracepoints. */
MUST_CHECK int tracefs_open(struct diag *diag, int *ret_fd, const char **ret_where);
/* Reads the number of a tracepoint. -ENOENT: no tracepoint of this name. */
MUST_CHECK int tracefs_id(const char *subsystem, const char *name, struct diag *diag, uint64_t *ret_id);
