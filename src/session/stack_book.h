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
uint64_t stack_book_nr_samples(const struct stack_book *book);
const struct place_table *stack_book_places(const struct stack_book *book); /* borrowed; of the stacks that were resolved */
/* Resolves names and fills the profile with all samples; counts stops and misses in its account. `unix_offset_ns` makes CLOCK_MONOTONIC times of day. 0 or -ENOMEM. */
MUST_CHECK int stack_book_profile(struct stack_book *book, const struct process_table *processes, const struct naming *naming, uint64_t unix_offset_ns);
