/* SPDX-License-Identifier: Apache-2.0 */
/* stack_maker: makes stacks of a profile of the hashes by which the kernel side names what it has sent, with what interpreters ran merged in, each pair once. One thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "model/profile.h"
#include "naming/namer.h"
#include "stacks/stack_store.h"

struct stack_maker;
/* Borrows all for its life; the stacks must all have come. NULL: no memory. */
struct stack_maker *stack_maker_new(const struct stack_store *store, struct namer *namer, struct profile *profile);
const struct stack_store *stack_maker_store(const struct stack_maker *maker); /* borrowed */
void stack_maker_free(struct stack_maker *maker); /* takes NULL */
/* Fills in user_stack, kernel_stack and labels of the sample, which stands for `count` observations: stops and misses are counted in the profile's account. 0 or -ENOMEM. */
MUST_CHECK int stack_maker_sample(struct stack_maker *maker, const struct stack_sides *sides, uint64_t count, struct profile_sample *sample);
/* Of a thread that waits: takes the functions of the kernel's scheduler out of its kernel stack, which may be PROFILE_NONE. The kernel leaves them out of the stack of a thread that waited already
 * when it was asked, and so the wait has one stack. One that has no others stays as it is. 0 or -ENOMEM. */
MUST_CHECK int stack_maker_drop_scheduler(struct stack_maker *maker, uint32_t *kernel_stack);
