/* SPDX-License-Identifier: Apache-2.0 */
/* java_rows: the rows of a frame's code (java_code.h), for the kernel side, and whether what the walk assumed of the frame is true. */
#pragma once
#include "runtime/java/java_vm.h"
#include "runtime/runtime.h"

/* The `prove` of struct runtime. */
MUST_CHECK int java_prove(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
			  const struct sonde_runtime_frame *frame, const struct runtime_rows *rows, bool *ret_is_true);
