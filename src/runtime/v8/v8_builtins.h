/* SPDX-License-Identifier: Apache-2.0 */
/* v8_builtins: V8's builtins: code that was compiled with V8, in one piece (snapshot/embedded/embedded-data.h), a table of where each
 * begins, and one of their names (builtins/builtins.cc). */
#pragma once
#include "runtime/v8/v8_layout.h"

/* Finds the builtins in the file. 0; -EOPNOTSUPP: not found; -ENOMEM. */
MUST_CHECK int v8_builtins_find(const struct v8_file *file, struct v8_process *process);
/* The name of the builtin at an offset in their code. 0, -EBADMSG, or the error of the read. */
MUST_CHECK int v8_builtins_name(const struct v8_process *process, const struct runtime_memory *memory, uint32_t off, char *name,
				size_t size);
