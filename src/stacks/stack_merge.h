/* SPDX-License-Identifier: Apache-2.0 */
/* stack_merge: merges the runs of a runtime stack into the native frames. Each run replaces the frame of the interpreter's loop that runs
 * it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stacks/runtime_stacks.h"

/* Receives the merged stack, leaf first. Each returns 0, or an error that ends the merge. */
struct stack_merge_sink {
	int (*native)(void *arg, uint32_t number); /* a native frame by its number */
	bool (*is_loop)(void *arg, uint32_t number); /* is that frame the interpreter's loop? */
	/* the native frames end here; has_more: runtime frames follow whose native frames are not known */
	int (*end)(void *arg, bool has_more);
	int (*item)(void *arg, uint32_t frame);     /* a runtime frame or a mark, by its number in the runtime_stacks */
	void *arg;
};
/* Runs whose native frame is none of these go behind all of them. 0 or the sink's error. */
MUST_CHECK int stack_merge(uint32_t nr_natives, const struct runtime_stack *runtime, const struct stack_merge_sink *sink);
