/* SPDX-License-Identifier: Apache-2.0 */
/* stack_store: the bodies that one window's samples and waits name by their hashes: stacks, what interpreters run, labels, wakers. The
 * kernel side sends each of them once in a window, so a store ends with its window; only what was sent just before the border, or is named
 * by a wait that goes on, is copied from the store before. One thread adds; any may read when nothing is added any more. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "stacks/label_table.h"
#include "stacks/runtime_stacks.h"
#include "stacks/stack_ids.h"
#include "stacks/stack_table.h"
#include "stacks/waker_table.h"

struct stack_store {
	struct stack_table *stacks;
	struct runtime_stacks *runtimes;
	struct label_table *labels;
	struct waker_table *wakers;
};

struct stack_store *stack_store_new(void); /* NULL: no memory */
/* `processes`: which the places of its stacks are of. Takes NULL. */
void stack_store_free(struct stack_store *store, const struct process_table *processes);
size_t stack_store_bytes(const struct stack_store *store);
/* Copies what the sides name from the store before, where this one does not have it. `before`: NULL: there is none. 0 or -ENOMEM. */
MUST_CHECK int stack_store_keep(struct stack_store *store, const struct stack_store *before, const struct stack_ids *ids,
				const struct process_table *processes);
/* The same for a waker, and what that names. 0: nothing. */
MUST_CHECK int stack_store_keep_waker(struct stack_store *store, const struct stack_store *before, uint64_t waker,
				      const struct process_table *processes);
