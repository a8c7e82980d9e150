/* SPDX-License-Identifier: Apache-2.0 */
/* stack_recorder: sorts the kernel side's records: a payload into the store of the open window, a sample into the window of its time. It
 * looks up a stack's frames in the process table soon after they arrive, while that still has the mappings of that time. Names are looked
 * up when the window is closed. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "model/account.h"
#include "process/identities.h"
#include "process/process_table.h"
#include "stacks/samples.h"
#include "stacks/stack_store.h"
#include "stacks/stack_walker.h"

struct stack_recorder;
/* with_times: keep each sample with its time; otherwise equal samples are one. Borrows `account` for its life to count collisions. NULL: no
 * memory. */
struct stack_recorder *stack_recorder_new(bool with_times, struct account *account);
/* Before the first sample: programs at events take the kernel stacks (at_event of struct stack_ids). */
void stack_recorder_at_events(struct stack_recorder *recorder);
void stack_recorder_free(struct stack_recorder *recorder, const struct process_table *processes); /* takes NULL */
/* From now on samples have the labels of their processes. Borrows `identities` for the recorder's life. */
void stack_recorder_use_identities(struct stack_recorder *recorder, struct identities *identities);
/* Takes a record as the sampler delivers it; copies it. 0 or -ENOMEM. */
MUST_CHECK int stack_recorder_record(struct stack_recorder *recorder, const void *record);
/* Looks up the frames of the stacks that arrived since the last call, and walks the deferred ones. All mapping events up to now must be in
 * the table. 0, -ENOMEM or the walker's error. */
MUST_CHECK int stack_recorder_resolve(struct stack_recorder *recorder, const struct process_table *processes,
				      const struct stack_walker *walker);
size_t stack_recorder_bytes(const struct stack_recorder *recorder); /* of the open window's payloads and samples */
uint64_t stack_recorder_nr_samples(const struct stack_recorder *recorder); /* of all windows */
/* Of the open window; borrowed until it is closed. */
const struct stack_store *stack_recorder_store(const struct stack_recorder *recorder);

/* Announces the window's end: samples from that time on (CLOCK_MONOTONIC) wait until the window is cut. */
void stack_recorder_set_border(struct stack_recorder *recorder, uint64_t border_ns);
/* Ends the window: samples from that time on (CLOCK_MONOTONIC) belong to the next one. 0 or -ENOMEM. */
MUST_CHECK int stack_recorder_cut(struct stack_recorder *recorder, uint64_t border_ns);
/* No more records will arrive: samples that wait for deferred stacks get none. 0 or -ENOMEM. */
MUST_CHECK int stack_recorder_give_up(struct stack_recorder *recorder, const struct process_table *processes);
/* Keeps the payloads that the ids and the waker (0: none) refer to: stack_recorder_keep in the store of the window that was cut,
 * stack_recorder_keep_on in the next one's. Before the cut window is closed. 0 or -ENOMEM. */
MUST_CHECK int stack_recorder_keep(struct stack_recorder *recorder, const struct stack_ids *ids, uint64_t waker,
				   const struct process_table *processes);
MUST_CHECK int stack_recorder_keep_on(struct stack_recorder *recorder, const struct stack_ids *ids, uint64_t waker,
				      const struct process_table *processes);

struct closed_window {
	const struct stack_store *store; /* the recorder's until stack_recorder_done; nothing is added to it any more */
	struct samples *samples;         /* the caller's */
};
/* Closes the window that was cut. Everything sent before the border must have arrived. Samples that still wait for deferred stacks go to
 * the next window. 0 or -ENOMEM. */
MUST_CHECK int stack_recorder_close(struct stack_recorder *recorder, const struct process_table *processes,
				    struct closed_window *ret_window);
/* The reader has finished with that store. */
void stack_recorder_done(struct stack_recorder *recorder, const struct stack_store *store, const struct process_table *processes);
