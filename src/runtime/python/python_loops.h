/* SPDX-License-Identifier: Apache-2.0 */
/* python_loops: finds the code of _PyEval_EvalFrameDefault, which compilers split in two: rarely executed code is in a part of its own
 * ("cold"), which has a symbol only in files that are not stripped. */
#pragma once
#include "abi/runtime.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"

/* Adds the cold parts behind `loops[0]`, which is what the exported symbol covers. Returns the number of all parts, at least 1; or
 * -ENOMEM. */
MUST_CHECK int python_loops_find(const struct elf_file *elf, struct sonde_code_range loops[SONDE_MAX_LOOPS]);
