/* SPDX-License-Identifier: Apache-2.0 */
/* wait_sides: what the key of a wait says of its stacks, as a stack_maker is asked. */
#pragma once
#include "abi/wait.h"
#include "session/stack_maker.h"

static inline struct stack_sides wait_sides(const struct sonde_wait_key *key)
{
	return (struct stack_sides){
		.user_stack = key->user_stack,
		.kernel_stack = key->kernel_stack,
		.runtime_stack = key->runtime_stack,
		.labels = key->labels,
		.tgid = key->tgid,
		.generation = key->generation,
		.user_generation = key->generation,
		.user_side = key->user_side,
		.kernel_side = key->kernel_side,
		.runtime_side = key->runtime_side,
		.labels_side = key->labels_side,
		.at_event = 1,
	};
}
