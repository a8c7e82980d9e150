/* SPDX-License-Identifier: Apache-2.0 */
/* machine: facts of this machine to check a command line against before anything starts. A fact that cannot be read refuses nothing: the
 * kernel decides then. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* Returns 0, or -EINVAL with a line that lists the CPUs that are online. */
MUST_CHECK int machine_check_cpu(uint64_t cpu, struct diag *diag);
