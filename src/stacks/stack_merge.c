// SPDX-License-Identifier: Apache-2.0
#include "stacks/stack_merge.h"

struct merge {
	const struct stack_merge_sink *sink;
	uint32_t nr_natives, next; /* next: the next native frame to give */
	bool has_ended;            /* all native frames were given */
};

/* Gives the native frames before `until`. */
static int give_natives(struct merge *merge, uint32_t until)
{
	int err = 0;

	while (!err && merge->next < until && merge->next < merge->nr_natives)
		err = merge->sink->native(merge->sink->arg, merge->next++);
	return err;
}

static int give_rest(struct merge *merge, bool has_more)
{
	int err = merge->has_ended ? 0 : give_natives(merge, merge->nr_natives);

	if (err || merge->has_ended)
		return err;
	merge->has_ended = true;
	return merge->sink->end(merge->sink->arg, has_more);
}

static int give_items(const struct merge *merge, const struct runtime_item *items, uint32_t nr)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < nr; i++)
		err = merge->sink->item(merge->sink->arg, items[i].frame);
	return err;
}

/* Gives one run at the native frame that its end refers to. A run may be empty: Perl code without a frame, such as a sort block. A run
 * without a native frame lies beyond the native stack: that ended early, was cut after the run was placed, or the run is on another stack,
 * from which the thread switched to this one. A mark goes before such a run. */
static int give_run(struct merge *merge, const struct runtime_item *items, uint32_t nr, uint32_t native)
{
	bool is_beyond = native >= merge->nr_natives && native != RUNTIME_ITEM_AT_LEAF,
	     is_placed = native < merge->nr_natives && native >= merge->next;
	int err = is_placed ? give_natives(merge, native) : is_beyond ? give_rest(merge, true) : 0;

	if (is_placed)
		merge->next = native + 1; /* the run replaces it */
	return err ? err : give_items(merge, items, nr);
}

/* A run whose end was not found, and the mark behind it. It belongs to the loop's next activation: the run's first frame called the native
 * frames before that. The mark alone is no run. */
static int give_open_run(struct merge *merge, const struct runtime_item *items, uint32_t nr)
{
	uint32_t native = merge->next;

	if (nr <= 1)
		return give_items(merge, items, nr);
	while (native < merge->nr_natives && !merge->sink->is_loop(merge->sink->arg, native))
		native++;
	return give_run(merge, items, nr, native < merge->nr_natives ? native : RUNTIME_ITEM_UNPLACED);
}

int stack_merge(uint32_t nr_natives, const struct runtime_stack *runtime, const struct stack_merge_sink *sink)
{
	struct merge merge = { .sink = sink, .nr_natives = nr_natives };
	uint32_t first = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < runtime->nr; i++) {
		if (runtime->items[i].frame != RUNTIME_ITEM_ENTRY)
			continue;
		err = give_run(&merge, runtime->items + first, i - first, runtime->items[i].native);
		first = i + 1;
	}
	if (!err)
		err = give_open_run(&merge, runtime->items + first, runtime->nr - first);
	return err ? err : give_rest(&merge, false);
}
