/* SPDX-License-Identifier: Apache-2.0 */
/* stack_sides: what the kernel side says of a moment of a thread: the stacks and labels by their hashes, and whose they are. */
#pragma once
#include <stdint.h>

#include "abi/wait.h"

struct stack_sides {
	uint64_t user_stack, kernel_stack, runtime_stack, labels; /* as in abi/record.h; 0 where the side is not STORED or RAW */
	uint32_t tgid, generation; /* of the process that all but the kernel's stack are of, as in struct sonde_sample_record */
	uint32_t user_generation;  /* the same, but of a user stack that came raw as user space knows it */
	uint8_t user_side, kernel_side, runtime_side, labels_side; /* enum sonde_side */
	uint8_t at_event; /* 1: the kernel's stack was taken by a program of a tracepoint, whose own frames stand at its leaf end: they are left out */
	uint8_t pad[7];   /* zero: it is compared as bytes */
};

/* What the key of a wait says of its stacks. */
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
