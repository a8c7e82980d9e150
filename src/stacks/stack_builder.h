/* SPDX-License-Identifier: Apache-2.0 */
/* stack_builder: builds a profile's stacks from the kernel side's hashes, with runtime frames merged in. Each pair of stacks is built once.
 * One thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "model/profile.h"
#include "naming/resolver.h"
#include "stacks/stack_store.h"

struct stack_builder;
/* Borrows all arguments for its life; all stacks must have arrived. NULL: no memory. */
struct stack_builder *stack_builder_new(const struct stack_store *store, struct resolver *resolver, struct profile *profile);
const struct stack_store *stack_builder_store(const struct stack_builder *builder); /* borrowed */
void stack_builder_free(struct stack_builder *builder); /* takes NULL */
/* Fills in user_stack, kernel_stack and labels of a sample that stands for `count` observations. Counts stops and misses in the profile's
 * account. 0 or -ENOMEM. */
MUST_CHECK int stack_builder_sample(struct stack_builder *builder, const struct stack_ids *ids, uint64_t count,
				    struct profile_sample *sample);
/* For a waiting thread: removes the kernel scheduler's functions from its kernel stack, which may be PROFILE_NONE. The kernel omits them
 * for a thread that already waits when its stack is read, so without them a wait has one stack. A stack of scheduler functions only stays
 * as it is. 0 or -ENOMEM. */
MUST_CHECK int stack_builder_drop_scheduler(struct stack_builder *builder, uint32_t *kernel_stack);
