/* SPDX-License-Identifier: Apache-2.0 */
/* stack_ids: what the kernel side says of a moment of a thread: what names its stacks and labels, and whose they are. */
#pragma once
#include <stdint.h>

#include "abi/wait.h"

struct stack_ids {
	SONDE_STACK_IDS;
	uint32_t tgid;            /* of the process that all but the kernel's stack are of */
	uint32_t user_generation; /* as `generation`, but of a user stack that came raw as user space knows it */
	uint8_t at_event; /* 1: the kernel's stack was taken by a program of a tracepoint, whose own frames stand at its leaf end: they are
			     left out */
	uint8_t pad[7];           /* zero: it is compared as bytes */
};

/* Without a body a hash says nothing: a full store must not make every sample one of its own. */
static inline struct sonde_stack_ids known_ids(const struct sonde_stack_ids *ids)
{
	struct sonde_stack_ids known = *ids;

	known.user_stack = ids->user_state == SONDE_STACK_STORED || ids->user_state == SONDE_STACK_DEFERRED ? ids->user_stack : 0;
	known.kernel_stack = ids->kernel_state == SONDE_STACK_STORED ? ids->kernel_stack : 0;
	known.runtime_stack = ids->runtime_state == SONDE_STACK_STORED ? ids->runtime_stack : 0;
	known.labels = ids->labels_state == SONDE_STACK_STORED ? ids->labels : 0;
	return known;
}

/* What the key of a wait says of its stacks. */
static inline struct stack_ids wait_ids(const struct sonde_wait_key *key)
{
	return (struct stack_ids){ .ids = key->ids, .tgid = key->tgid, .user_generation = key->generation, .at_event = 1 };
}
