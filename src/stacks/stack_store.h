/* SPDX-License-Identifier: Apache-2.0 */
/* stack_store: the payloads that one window's samples and waits refer to by hash: stacks, runtime stacks, labels, wakers. The kernel side
 * sends each once in a window, so a store ends with its window. Only payloads sent just before the border, or needed by a wait that
 * continues, are copied from the previous store. One thread adds; any thread may read once nothing is added any more. */
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
/* `processes`: the table that the stacks' locations refer to. Takes NULL. */
void stack_store_free(struct stack_store *store, const struct process_table *processes);
size_t stack_store_bytes(const struct stack_store *store);
/* Copies the payloads that the ids refer to from `before` (may be NULL), unless `store` has them. 0 or -ENOMEM. */
MUST_CHECK int stack_store_keep(struct stack_store *store, const struct stack_store *before, const struct stack_ids *ids,
				const struct process_table *processes);
/* Does the same for a waker (0: none) and its payloads. */
MUST_CHECK int stack_store_keep_waker(struct stack_store *store, const struct stack_store *before, uint64_t waker,
				      const struct process_table *processes);
