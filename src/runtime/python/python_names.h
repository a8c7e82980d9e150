/* SPDX-License-Identifier: Apache-2.0 */
/* python_names: resolves a frame of CPython: function, file and line of a code object in a process's memory. From 3.11 on the name is the
 * qualified one ("Class.method"); before, code objects have only the bare name ("method").
 *
 * The line is the interpreter's own (f_lineno, tracebacks). If the interpreter has none (None: code that the compiler added at the end of a
 * block), it is 0. A frame that was just entered is on the first line of its code: it is at an instruction before the first one that has a
 * line, or before any (f_lasti of -1). */
#pragma once
#include "abi/python.h"
#include "runtime/python/python_layout.h"
#include "runtime/runtime.h"

/* The `describe` of struct runtime. Checks the object's type by process->load_bias. */
MUST_CHECK int python_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
			       const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
