/* SPDX-License-Identifier: Apache-2.0 */
/* java_method: name, file and line of a method of HotSpot in a process's memory. */
#pragma once
#include "runtime/java/java_vm.h"
#include "runtime/runtime.h"

/* Resolves a Method*. `cookie` NULL: not checked; else: -ESTALE if it is not that of the method, before or after. bci SONDE_JAVA_NO_BCI: no
 * line. 0; -ESTALE; -EBADMSG: no method; or the result of memory->read. */
MUST_CHECK int java_method_describe(const struct java_process *process, const struct runtime_memory *memory, uint64_t method, uint32_t bci,
				    const uint32_t *cookie, struct runtime_function *ret_function);
