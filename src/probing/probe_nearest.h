/* SPDX-License-Identifier: Apache-2.0 */
/* probe_nearest: what can be traced instead of a kernel function that cannot. */
#pragma once
#include "base/cleanup.h"
#include "base/diag.h"
#include "programs/kernel_types.h"

/* Says that this kernel cannot probe the function, and what it can. `is_handler`: of an interrupt; `way`: by which it cannot.
 * -EOPNOTSUPP. */
MUST_CHECK int probe_refuse(struct kernel_types *types, const char *function, bool is_handler, const char *way, struct diag *diag);
