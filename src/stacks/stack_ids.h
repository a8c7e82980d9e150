/* SPDX-License-Identifier: Apache-2.0 */
/* stack_ids: what the kernel side sends about a thread at one moment: the ids of its stacks and labels, and their process. */
#pragma once
#include <stdint.h>

#include "abi/wait.h"

struct stack_ids {
	SONDE_STACK_IDS;
	uint32_t tgid;            /* of the process; the kernel stack belongs to none */
	uint32_t user_generation; /* as `generation`; of a deferred stack: as user space knows it */
	/* 1: a tracepoint program took the kernel stack; the frames of that program, at the leaf end, are left out */
	uint8_t at_event;
	uint8_t pad[7];           /* zero: it is compared as bytes */
};

/* Clears the hashes that have no payload. Otherwise, when a store is full, each sample would become an entry of its own. */
static inline struct sonde_stack_ids known_ids(const struct sonde_stack_ids *ids)
{
	struct sonde_stack_ids known = *ids;

	known.user_stack = ids->user_state == SONDE_STACK_STORED || ids->user_state == SONDE_STACK_DEFERRED ? ids->user_stack : 0;
	known.kernel_stack = ids->kernel_state == SONDE_STACK_STORED ? ids->kernel_stack : 0;
	known.runtime_stack = ids->runtime_state == SONDE_STACK_STORED ? ids->runtime_stack : 0;
	known.labels = ids->labels_state == SONDE_STACK_STORED ? ids->labels : 0;
	return known;
}

/* The stack ids in a wait's key. */
static inline struct stack_ids wait_ids(const struct sonde_wait_key *key)
{
	return (struct stack_ids){ .ids = key->ids, .tgid = key->tgid, .user_generation = key->generation, .at_event = 1 };
}
