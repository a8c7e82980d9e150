/* SPDX-License-Identifier: Apache-2.0 */
/* machine: facts of this machine that a command line can be checked against before anything starts. What cannot be read is not
 * refused here: the kernel has the last word. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* 0; -EINVAL with a line about what there is instead. */
MUST_CHECK int machine_check_cpu(uint64_t cpu, struct diag *diag);
