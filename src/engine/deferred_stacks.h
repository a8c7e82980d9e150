/* SPDX-License-Identifier: Apache-2.0 */
/* deferred_stacks: walks the stacks that came raw because their process or file was not known yet to the kernel side, with what is known by
 * now; and has those checked that came to be checked. One thread. */
#pragma once
#include "collect/sampler.h"
#include "engine/auditor.h"
#include "engine/initial_stacks.h"
#include "stacks/stack_walker.h"
#include "track/tracker.h"

struct deferred_stacks;
/* Borrows all for its life; `auditor` and `seeds` may be NULL. NULL: no memory. */
struct deferred_stacks *deferred_stacks_new(struct tracker *tracker, struct sampler *sampler, struct auditor *auditor,
					    struct initial_stacks *initial_stacks);
void deferred_stacks_free(struct deferred_stacks *stacks); /* takes NULL */
struct stack_walker deferred_stacks_walker(struct deferred_stacks *stacks);
