/* SPDX-License-Identifier: Apache-2.0 */
/* failure: what a failure means to the user. */
#pragma once
#include <sonde/sonde.h>

#include "base/diag.h"

/* The exit code of what the kernel or the machine refused; the reason in `diag` gets a hint when rights are missing. */
enum sonde_exit failure_code(int err, struct diag *diag);
