// SPDX-License-Identifier: Apache-2.0
#include "stacks/stack_store.h"

#include <errno.h>
#include <stdlib.h>

#define LABELS_BYTES_MAX ((size_t)1 << 30)

struct stack_store *stack_store_new(void)
{
	struct stack_store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	store->stacks = stack_table_new();
	store->runtimes = runtime_stacks_new();
	store->labels = label_table_new(LABELS_BYTES_MAX);
	store->wakers = waker_table_new();
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
		location_table_release(stack_table_locations(store->stacks), processes);
	stack_table_free(store->stacks);
	runtime_stacks_free(store->runtimes);
	label_table_free(store->labels);
	waker_table_free(store->wakers);
	free(store);
}

size_t stack_store_bytes(const struct stack_store *store)
{
	return stack_table_bytes(store->stacks) + runtime_stacks_bytes(store->runtimes) + label_table_bytes(store->labels) +
	       waker_table_bytes(store->wakers);
}

static int keep_runtime(struct stack_store *store, const struct stack_store *before, uint64_t hash)
{
	struct runtime_stack stack;

	return runtime_stacks_find(store->runtimes, hash, &stack) || !runtime_stacks_find(before->runtimes, hash, &stack)
		   ? 0
		   : runtime_stacks_copy(store->runtimes, before->runtimes, hash);
}

static int copy_stack(struct stack_store *store, const struct stack_store *before, const struct stack *stack,
		      const struct process_table *processes, struct stack **ret_copy)
{
	int err = stack->has_runtime ? keep_runtime(store, before, stack->hash) : 0;

	return err ? err : stack_table_copy(store->stacks, before->stacks, stack, processes, ret_copy);
}

static int keep_stack(struct stack_store *store, const struct stack_store *before, uint64_t hash, const struct process_table *processes)
{
	const struct stack *stack = stack_table_find(store->stacks, hash) ? NULL : stack_table_find(before->stacks, hash);
	struct stack *copy;

	return stack ? copy_stack(store, before, stack, processes, &copy) : 0;
}

/* By the id of its deferred record. */
static int keep_deferred(struct stack_store *store, const struct stack_store *before, uint64_t id, const struct process_table *processes)
{
	const struct stack *stack = stack_table_find_deferred(store->stacks, id) ? NULL : stack_table_find_deferred(before->stacks, id);
	struct stack *copy;
	int err;

	if (!stack)
		return 0;
	copy = stack_table_find(store->stacks, stack->hash);
	err = copy ? 0 : copy_stack(store, before, stack, processes, &copy);
	return err ? err : stack_table_add_deferred(store->stacks, id, copy);
}

static int keep_labels(struct stack_store *store, const struct stack_store *before, uint64_t hash)
{
	return label_table_owner(store->labels, hash) || !label_table_owner(before->labels, hash)
		   ? 0
		   : label_table_copy(store->labels, before->labels, hash);
}

int stack_store_keep(struct stack_store *store, const struct stack_store *before, const struct stack_ids *ids,
		     const struct process_table *processes)
{
	int err = 0;

	if (!before)
		return 0;
	if (ids->user_state == SONDE_STACK_STORED)
		err = keep_stack(store, before, ids->user_stack, processes);
	if (ids->user_state == SONDE_STACK_DEFERRED)
		err = keep_deferred(store, before, ids->user_stack, processes);
	if (!err && ids->kernel_state == SONDE_STACK_STORED)
		err = keep_stack(store, before, ids->kernel_stack, processes);
	if (!err && ids->runtime_state == SONDE_STACK_STORED)
		err = keep_runtime(store, before, ids->runtime_stack);
	if (!err && ids->labels_state == SONDE_STACK_STORED)
		err = keep_labels(store, before, ids->labels);
	return err;
}

int stack_store_keep_waker(struct stack_store *store, const struct stack_store *before, uint64_t hash,
			   const struct process_table *processes)
{
	const struct waker *waker = waker_table_find(store->wakers, hash);
	struct stack_ids ids;
	int err = 0;

	if (!hash || !before)
		return 0;
	if (!waker) {
		waker = waker_table_find(before->wakers, hash);
		err = waker ? waker_table_copy(store->wakers, hash, waker) : 0;
	}
	if (err || !waker)
		return err;
	ids = wait_ids(&waker->key);
	return stack_store_keep(store, before, &ids, processes);
}
