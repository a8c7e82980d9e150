/* SPDX-License-Identifier: Apache-2.0 */
/* tracefs: where the kernel lists its tracepoints and their numbers. Where it is not mounted we mount it for ourselves: a mount that has no
 * place in any directory tree, that nobody else sees, and that is gone with its descriptor. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* A directory with "events" in it, to be closed. -EACCES, -EPERM: not permitted; -ENODEV: this kernel has no tracepoints. */
MUST_CHECK int tracefs_open(struct diag *diag, int *ret_fd);
/* The number of a tracepoint. -ENOENT: there is none of this name. */
MUST_CHECK int tracefs_id(const char *subsystem, const char *name, struct diag *diag, uint64_t *ret_id);
