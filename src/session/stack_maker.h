/* SPDX-License-Identifier: Apache-2.0 */
/* stack_maker: makes stacks of a profile of the hashes by which the kernel side names what it has sent, with what interpreters ran merged in, each pair once. One thread. */
#pragma once
#include <stdint.h>

#include "base/cleanup.h"
#include "model/profile.h"
#include "session/label_book.h"
#include "session/namer.h"
#include "session/runtime_book.h"
#include "session/stack_table.h"

/* What the kernel side says of a moment of a thread. */
struct stack_sides {
	uint64_t user_stack, kernel_stack, runtime_stack, labels; /* as in abi/record.h; 0 where the side is not STORED or RAW */
	uint32_t tgid, generation; /* of the process that all but the kernel's stack are of, as in struct sonde_sample_record */
	uint32_t user_generation;  /* the same, but of a user stack that came raw as user space knows it */
	uint8_t user_side, kernel_side, runtime_side, labels_side; /* enum sonde_side */
	uint8_t at_event; /* 1: the kernel's stack was taken by a program of a tracepoint, whose own frames stand at its leaf end: they are left out */
	uint8_t pad[7];   /* zero: it is compared as bytes */
};

struct stack_maker;
/* Borrows all for its life; the stacks must all have come. NULL: no memory. */
struct stack_maker *stack_maker_new(struct stack_table *table, const struct runtime_book *runtimes, const struct label_book *labels, struct namer *namer, struct profile *profile);
void stack_maker_free(struct stack_maker *maker); /* takes NULL */
/* Fills in user_stack, kernel_stack and labels of the sample, which stands for `count` observations: stops and misses are counted in the profile's account. 0 or -ENOMEM. */
MUST_CHECK int stack_maker_sample(struct stack_maker *maker, const struct stack_sides *sides, uint64_t count, struct profile_sample *sample);
/* Of a thread that waits: takes the functions of the kernel's scheduler out of its kernel stack, which may be PROFILE_NONE. The kernel leaves them out of the stack of a thread that waited already
 * when it was asked, and so the wait has one stack. One that has no others stays as it is. 0 or -ENOMEM. */
MUST_CHECK int stack_maker_drop_scheduler(struct stack_maker *maker, uint32_t *kernel_stack);
