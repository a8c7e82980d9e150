/* SPDX-License-Identifier: Apache-2.0 */
/* heap_profile: what was allocated and what is outstanding, as a profile. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "engine/window.h"
#include "memory/allocated.h"
#include "memory/outstanding.h"
#include "model/profile.h"
#include "stacks/stack_builder.h"
#include "stacks/stack_recorder.h"

struct heap { /* of one window */
	struct outstanding *outstanding; /* at its end */
	struct allocated *allocated;     /* since its begin; empty for `leak` */
	bool is_estimate;                /* frees were not seen: nothing is known of what is outstanding */
};

/* Begins anew what is outstanding, in the same or a new heap; what was allocated stays. 0 or -ENOMEM. */
MUST_CHECK int heap_renew(struct heap **heap, bool keeps_each);
void heap_free(struct heap *heap); /* takes NULL */
/* Moves the heap into the window, which frees it. The stacks of older blocks were sent in an earlier window: each window copies them from
 * the one before. 0 or -ENOMEM. */
MUST_CHECK int heap_close(struct heap **heap, struct stack_recorder *recorder, const struct process_table *processes,
			  struct window *window);

/* What is outstanding, with the growth of suspects. 0 or -ENOMEM. */
MUST_CHECK int heap_profile(const struct heap *heap, struct stack_builder *builder, struct profile *profile);
/* What was allocated, and what of it is outstanding; histograms of sizes and lifetimes, also by stack if `by_stack`. 0 or -ENOMEM. */
MUST_CHECK int heap_profile_of_sums(const struct heap *heap, bool by_stack, struct stack_builder *builder, struct profile *profile);
