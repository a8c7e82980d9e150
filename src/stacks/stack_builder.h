/* SPDX-License-Identifier: Apache-2.0 */
/* stack_builder: makes stacks of a profile of the hashes by which the kernel side names what it has sent, with what interpreters ran merged
 * in, each pair once. One thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "model/profile.h"
#include "naming/resolver.h"
#include "stacks/stack_store.h"

struct stack_builder;
/* Borrows all for its life; the stacks must all have come. NULL: no memory. */
struct stack_builder *stack_builder_new(const struct stack_store *store, struct resolver *resolver, struct profile *profile);
const struct stack_store *stack_builder_store(const struct stack_builder *builder); /* borrowed */
void stack_builder_free(struct stack_builder *builder); /* takes NULL */
/* Fills in user_stack, kernel_stack and labels of the sample, which stands for `count` observations: stops and misses are counted in the
 * profile's account. 0 or -ENOMEM. */
MUST_CHECK int stack_builder_sample(struct stack_builder *builder, const struct stack_ids *ids, uint64_t count,
				    struct profile_sample *sample);
/* Of a thread that waits: takes the functions of the kernel's scheduler out of its kernel stack, which may be PROFILE_NONE. The kernel
 * leaves them out of the stack of a thread that waited already when it was asked, and so the wait has one stack. One that has no others
 * stays as it is. 0 or -ENOMEM. */
MUST_CHECK int stack_builder_drop_scheduler(struct stack_builder *builder, uint32_t *kernel_stack);
