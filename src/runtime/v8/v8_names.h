/* SPDX-License-Identifier: Apache-2.0 */
/* v8_names: resolves V8's frames from the process's memory. */
#pragma once
#include "runtime/runtime.h"

/* struct runtime's `describe`. */
MUST_CHECK int v8_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
			   const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
