/* SPDX-License-Identifier: Apache-2.0 */
/* raw_stacks: walks the stacks that came raw because their process or file was not known yet to the kernel side, with what is known by now; and has those checked that came to be
 * checked. One thread. */
#pragma once
#include "collect/sampler.h"
#include "engine/auditor.h"
#include "engine/seed.h"
#include "stacks/stack_walker.h"
#include "track/tracker.h"

struct raw_stacks;
/* Borrows all for its life; `auditor` and `seeds` may be NULL. NULL: no memory. */
struct raw_stacks *raw_stacks_new(struct tracker *tracker, struct sampler *sampler, struct auditor *auditor, struct seeds *seeds);
void raw_stacks_free(struct raw_stacks *stacks); /* takes NULL */
struct stack_walker raw_stacks_walker(struct raw_stacks *stacks);
