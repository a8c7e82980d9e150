/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_list: a list of runtimes by their names, as an option has it. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

/* "python,java", or "none"; NULL: all. *ret_off: bits 1 << enum sonde_runtime of those that are not in it. 0; -EINVAL with a line. */
MUST_CHECK int runtime_list_parse(const char *list, struct diag *diag, uint32_t *ret_off);
