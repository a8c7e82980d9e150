/* SPDX-License-Identifier: Apache-2.0 */
/* v8_code: compiled code of the heap: which object a pc is in, where in the source it is, and which functions are inlined there. */
#pragma once
#include "runtime/v8/v8_lines.h"

struct v8_code_object {
	uint64_t object, start; /* the object that contains the instructions, and these */
	uint64_t code;          /* the object that describes them */
	uint64_t data, positions;
	uint64_t compilation;
	uint32_t kind, size;
};

/* Finds the code at pc. 0; -ESTALE: there is none; or the error of the read. */
MUST_CHECK int v8_code_find(const struct v8_heap *heap, uint64_t pc, struct v8_code_object *ret_code);
/* The function of optimized code at an offset, inlined ones first: `level` 0 is the innermost. *ret_shared 0: the code's own function. 0;
 * -EBADMSG; or the error of the read. */
MUST_CHECK int v8_code_inlined(const struct v8_heap *heap, const struct v8_code_object *code, uint32_t off, uint32_t level,
			       uint64_t *ret_shared, int32_t *ret_position);
