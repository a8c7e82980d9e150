/* SPDX-License-Identifier: Apache-2.0 */
/* java_names: resolves a frame of HotSpot. Compiled code has several functions at one place: the compiler's debug information says which
 * calls were inlined there. */
#pragma once
#include "runtime/java/java_vm.h"
#include "runtime/runtime.h"

/* The `describe` of struct runtime. */
MUST_CHECK int java_describe(const struct runtime_image *image, const void *process, const struct runtime_memory *memory,
			     const struct sonde_runtime_frame *frame, struct runtime_function *ret_function);
