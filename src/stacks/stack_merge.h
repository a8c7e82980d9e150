/* SPDX-License-Identifier: Apache-2.0 */
/* stack_merge: puts the runs of a runtime stack where they belong among the native frames: each in the place of the frame of the
 * interpreter's loop that runs it. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "stacks/runtime_stacks.h"

/* Takes what the merged stack consists of, leaf first. 0 or an error that ends the merge. */
struct stack_merge_sink {
	int (*native)(void *arg, uint32_t number); /* a native frame by its number */
	bool (*is_loop)(void *arg, uint32_t number); /* is that one the interpreter's loop? */
	int (*end)(
	    void *arg,
	    bool has_more); /* the native frames end here; has_more: frames of the runtime follow, whose native frames are not known */
	int (*item)(void *arg, uint32_t frame);     /* a frame of the runtime, or a mark, by its number in the runtime_stacks */
	void *arg;
};
/* Runs whose native frame is none of these stand behind all of them. 0 or what the sink gave. */
MUST_CHECK int stack_merge(uint32_t nr_natives, const struct runtime_stack *runtime, const struct stack_merge_sink *sink);
