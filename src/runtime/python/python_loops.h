/* SPDX-License-Identifier: Apache-2.0 */
/* python_loops: the code of _PyEval_EvalFrameDefault, which compilers put into two places: what they think is rarely run stands in a part
 * of its own ("cold"), that has a symbol only in files that are not stripped. */
#pragma once
#include "abi/runtime.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"

/* `loops[0]` is what the exported symbol covers. Puts the cold parts behind it: the number of all, at least 1; or -ENOMEM. */
MUST_CHECK int python_loops_find(const struct elf_file *elf, struct sonde_code_range loops[SONDE_MAX_LOOPS]);
