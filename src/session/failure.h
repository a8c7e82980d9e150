/* SPDX-License-Identifier: Apache-2.0 */
/* failure: what a failure means to the user. */
#pragma once
#include <sonde/sonde.h>

#include "base/diag.h"

/* Returns the exit code for an error of the kernel or the machine. If rights are missing, adds a hint to `diag`. */
enum sonde_exit failure_code(int err, struct diag *diag);
