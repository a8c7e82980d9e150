/* SPDX-License-Identifier: Apache-2.0 */
/* java_interpreter: where the code of HotSpot's interpreter is, and how its entries for methods build their frames. The code is in codelets,
 * one behind the other (StubQueue, InterpreterCodelet). */
#pragma once
#include "abi/java.h"
#include "runtime/runtime.h"

struct java_queue_layout {
	uint64_t buffer, limit, begin, end, number; /* in StubQueue */
	uint64_t size, description;                 /* in InterpreterCodelet */
};

/* Fills in the interpreter's part of *java. 0; -EAGAIN: not all of its code is made yet; -EOPNOTSUPP: its code is not as known: `diag`. */
MUST_CHECK int java_interpreter_read(const struct java_queue_layout *layout, uint64_t queue, const struct runtime_memory *memory,
				     struct diag *diag, struct sonde_java *java);
