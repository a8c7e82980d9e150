// SPDX-License-Identifier: Apache-2.0
#include "stacks/stack_store.h"

#include <errno.h>
#include <stdlib.h>

struct stack_store *stack_store_new(void)
{
	struct stack_store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	store->stacks = stack_table_new();
	store->runtimes = runtime_book_new();
	store->labels = label_book_new();
	store->wakers = waker_book_new();
	if (store->stacks && store->runtimes && store->labels && store->wakers)
		return store;
	stack_store_free(store, NULL);
	return NULL;
}

void stack_store_free(struct stack_store *store, const struct process_table *processes)
{
	if (!store)
		return;
	if (processes)
		place_table_release(stack_table_places(store->stacks), processes);
	stack_table_free(store->stacks);
	runtime_book_free(store->runtimes);
	label_book_free(store->labels);
	waker_book_free(store->wakers);
	free(store);
}

size_t stack_store_bytes(const struct stack_store *store)
{
	return stack_table_bytes(store->stacks) + runtime_book_bytes(store->runtimes) + label_book_bytes(store->labels) + waker_book_bytes(store->wakers);
}

static int keep_stack(struct stack_store *store, const struct stack_store *before, uint64_t hash, const struct process_table *processes)
{
	const struct stack *stack = stack_table_find(store->stacks, hash) ? NULL : stack_table_find(before->stacks, hash);
	struct stack *copy;

	return stack ? stack_table_copy(store->stacks, before->stacks, stack, processes, &copy) : 0;
}

/* Under the id of its raw record. */
static int keep_raw(struct stack_store *store, const struct stack_store *before, uint64_t id, const struct process_table *processes)
{
	const struct stack *stack = stack_table_find_raw(store->stacks, id) ? NULL : stack_table_find_raw(before->stacks, id);
	struct stack *copy;
	int err;

	if (!stack)
		return 0;
	copy = stack_table_find(store->stacks, stack->hash);
	err = copy ? 0 : stack_table_copy(store->stacks, before->stacks, stack, processes, &copy);
	return err ? err : stack_table_add_raw(store->stacks, id, copy);
}

static int keep_runtime(struct stack_store *store, const struct stack_store *before, uint64_t hash)
{
	struct runtime_stack stack;

	return runtime_book_find(store->runtimes, hash, &stack) || !runtime_book_find(before->runtimes, hash, &stack) ? 0 :
															runtime_book_copy(store->runtimes, before->runtimes, hash);
}

static int keep_labels(struct stack_store *store, const struct stack_store *before, uint64_t hash)
{
	return label_book_owner(store->labels, hash) || !label_book_owner(before->labels, hash) ? 0 : label_book_copy(store->labels, before->labels, hash);
}

int stack_store_keep(struct stack_store *store, const struct stack_store *before, const struct stack_sides *sides, const struct process_table *processes)
{
	int err = 0;

	if (!before)
		return 0;
	if (sides->user_side == SONDE_SIDE_STORED)
		err = keep_stack(store, before, sides->user_stack, processes);
	if (sides->user_side == SONDE_SIDE_RAW)
		err = keep_raw(store, before, sides->user_stack, processes);
	if (!err && sides->kernel_side == SONDE_SIDE_STORED)
		err = keep_stack(store, before, sides->kernel_stack, processes);
	if (!err && sides->runtime_side == SONDE_SIDE_STORED)
		err = keep_runtime(store, before, sides->runtime_stack);
	if (!err && sides->labels_side == SONDE_SIDE_STORED)
		err = keep_labels(store, before, sides->labels);
	return err;
}

int stack_store_keep_waker(struct stack_store *store, const struct stack_store *before, uint64_t hash, const struct process_table *processes)
{
	const struct waker *waker = waker_book_find(store->wakers, hash);
	struct stack_sides sides;
	int err = 0;

	if (!hash || !before)
		return 0;
	if (!waker) {
		waker = waker_book_find(before->wakers, hash);
		err = waker ? waker_book_copy(store->wakers, hash, waker) : 0;
	}
	if (err || !waker)
		return err;
	sides = wait_sides(&waker->key);
	return stack_store_keep(store, before, &sides, processes);
}
