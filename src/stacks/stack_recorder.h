/* SPDX-License-Identifier: Apache-2.0 */
/* stack_recorder: takes the kernel side's records and puts them where they belong: a body into the store of the window that is open, a
 * sample among those of the window that its time lies in. A stack's frames are looked up in the process table soon after they arrive, while
 * that still knows what was mapped then; names are looked up when the window is closed. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "model/account.h"
#include "process/process_table.h"
#include "stacks/samples.h"
#include "stacks/stack_store.h"
#include "stacks/stack_walker.h"

struct stack_recorder;
/* with_times: each sample for itself, with its time, or equal ones as one. Borrows `account` for its life: collisions are counted there.
 * NULL: no memory. */
struct stack_recorder *stack_recorder_new(bool with_times, struct account *account);
void stack_recorder_free(struct stack_recorder *recorder, const struct process_table *processes); /* takes NULL */
/* A record as the sampler gives it; copied. 0 or -ENOMEM. */
MUST_CHECK int stack_recorder_record(struct stack_recorder *recorder, const void *record);
/* Looks up the frames of the stacks that have come since the last call, and walks those that came raw. All mapping events up to now must be
 * in the table. 0, -ENOMEM or what the walker gave. */
MUST_CHECK int stack_recorder_resolve(struct stack_recorder *recorder, const struct process_table *processes,
				      const struct stack_walker *walker);
size_t stack_recorder_bytes(const struct stack_recorder *recorder); /* of the open window's bodies and samples */
uint64_t stack_recorder_nr_samples(const struct stack_recorder *recorder); /* of all windows */
const struct stack_store *stack_recorder_store(const struct stack_recorder *recorder); /* of the open window; borrowed until it is closed */

/* The window will end: samples from that time on (CLOCK_MONOTONIC) wait until it is cut. */
void stack_recorder_set_border(struct stack_recorder *recorder, uint64_t border_ns);
/* The window ends: samples from that time on (CLOCK_MONOTONIC) are of the next one. 0 or -ENOMEM. */
MUST_CHECK int stack_recorder_cut(struct stack_recorder *recorder, uint64_t border_ns);
/* No more will come at all: samples that wait for their raw stacks have none. 0 or -ENOMEM. */
MUST_CHECK int stack_recorder_give_up(struct stack_recorder *recorder, const struct process_table *processes);
/* What these sides name, and that waker (0: none), is to be in the store of the window that was cut, and in that of the next one,
 * respectively, when the former is closed. 0 or -ENOMEM. */
MUST_CHECK int stack_recorder_keep(struct stack_recorder *recorder, const struct stack_ids *ids, uint64_t waker,
				   const struct process_table *processes);
MUST_CHECK int stack_recorder_keep_on(struct stack_recorder *recorder, const struct stack_ids *ids, uint64_t waker,
				      const struct process_table *processes);

struct closed_window {
	const struct stack_store *store; /* of the book until stack_recorder_done; nothing is added to it any more */
	struct samples *samples;         /* the caller's */
};
/* Closes the window that was cut, after all that was sent before the border has come. Samples that wait for their raw stacks still are of
 * the next one. 0 or -ENOMEM. */
MUST_CHECK int stack_recorder_close(struct stack_recorder *recorder, const struct process_table *processes,
				    struct closed_window *ret_window);
/* Nobody reads that store any more. */
void stack_recorder_done(struct stack_recorder *recorder, const struct stack_store *store, const struct process_table *processes);
