/* SPDX-License-Identifier: Apache-2.0 */
/* stack_book: takes the kernel side's records and makes a profile of them. A stack's frames are looked up in the process table soon after
 * they arrive, while that still knows what was mapped then; names are looked up at the end, once per place in a file. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "model/profile.h"
#include "process/process_table.h"
#include "session/namer.h"
#include "session/stack_maker.h"
#include "session/stack_walker.h"

struct stack_book;
/* with_times: each sample for itself, with its time, or equal ones as one. Borrows `profile`, which is made of the records, for its life. NULL: no memory. */
struct stack_book *stack_book_new(bool with_times, struct profile *profile);
void stack_book_free(struct stack_book *book);
/* A record as the sampler gives it; copied. 0 or -ENOMEM. */
MUST_CHECK int stack_book_record(struct stack_book *book, const void *record);
/* Looks up the frames of the stacks that have come since the last call, and walks those that came raw. All mapping events up to now must be in the table. 0, -ENOMEM or
 * what the walker gave. */
MUST_CHECK int stack_book_resolve(struct stack_book *book, const struct process_table *processes, const struct stack_walker *walker);
bool stack_book_has_room(const struct stack_book *book); /* for more stacks, without end */
uint64_t stack_book_nr_samples(const struct stack_book *book);
/* Equal samples are one. */
struct stack_sample {
	const struct stack_sides *sides;
	uint32_t tgid, tid, cpu;
	const char *comm;
	uint64_t count;
};
uint32_t stack_book_nr_different(const struct stack_book *book);
struct stack_sample stack_book_sample(const struct stack_book *book, uint32_t number); /* borrowed until the next record */
const struct place_table *stack_book_places(const struct stack_book *book); /* borrowed; of the stacks that were resolved */
/* Resolves the names of what has come; samples whose stacks have not will have none. *ret_maker: for who has more to ask of the stacks than the samples; borrowed until stack_book_free, as `naming` is
 * by the book. Again when more has come. 0 or -ENOMEM. */
MUST_CHECK int stack_book_read_names(struct stack_book *book, const struct process_table *processes, const struct naming *naming, struct stack_maker **ret_maker);
/* Fills the profile with all samples; counts stops and misses in its account. `unix_offset_ns` makes CLOCK_MONOTONIC times of day. 0 or -ENOMEM. */
MUST_CHECK int stack_book_profile(struct stack_book *book, uint64_t unix_offset_ns);
