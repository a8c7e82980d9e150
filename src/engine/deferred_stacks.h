/* SPDX-License-Identifier: Apache-2.0 */
/* deferred_stacks: walks the stacks that the kernel side deferred because it did not know their process or file yet; and has stacks audited
 * that were sent for that. One thread. */
#pragma once
#include "collect/sampler.h"
#include "engine/auditor.h"
#include "engine/initial_stacks.h"
#include "proxy/proxy.h"
#include "stacks/stack_walker.h"
#include "track/tracker.h"

struct deferred_stacks;
/* Borrows all arguments for its life; `auditor` and `initial_stacks` may be NULL. NULL: no memory. */
struct deferred_stacks *deferred_stacks_new(struct tracker *tracker, struct sampler *sampler, struct proxy *proxy, struct auditor *auditor,
					    struct initial_stacks *initial_stacks);
void deferred_stacks_free(struct deferred_stacks *stacks); /* takes NULL */
struct stack_walker deferred_stacks_walker(struct deferred_stacks *stacks);
