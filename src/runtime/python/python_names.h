/* SPDX-License-Identifier: Apache-2.0 */
/* python_names: what a frame of CPython is called: the function, file and line of a code object in a process's memory. From 3.11 on the
 * name is the qualified one
 * ("Class.method"); before, code objects have the bare name alone ("method").
 *
 * The line is the one that the interpreter has for the place (f_lineno, tracebacks). Where the interpreter has none (None: code that the
 * compiler added at the end of a block), it is 0; but a frame that was only just entered, at an instruction before the first that has a
 * line, or before any (f_lasti of -1), is on the first line of its code. */
#pragma once
#include "abi/python.h"
#include "runtime/python/python_layout.h"
#include "runtime/runtime.h"

/* As struct runtime's `describe`. By process->load_bias the type of the object is checked. */
MUST_CHECK int python_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
			       const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
