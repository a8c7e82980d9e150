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

/* The runs of one runtime that were not given yet. */
struct rest {
	const struct runtime_item *items;
	uint32_t nr;
	uint32_t next; /* the native frame behind the last run */
};

/* The next run of a rest. */
struct run {
	uint32_t nr_items, nr_frames; /* nr_items: with its end */
	uint32_t native;              /* as in struct runtime_item */
	bool is_mark;                 /* there is no run, only the mark behind the last one: it replaces nothing */
	uint64_t order;               /* of all runtimes' next runs, that with the lowest one is given first */
};

/* A run whose end was not found, and the mark behind it, belong to the loop's next activation: the run's first frame called the native
 * frames before that. */
static uint32_t find_loop(const struct merge *merge, uint32_t native)
{
	while (native < merge->nr_natives && !merge->sink->is_loop(merge->sink->arg, native))
		native++;
	return native < merge->nr_natives ? native : RUNTIME_ITEM_UNPLACED;
}

static struct run run_of(const struct merge *merge, const struct rest *rest)
{
	struct run run = { 0 };

	while (run.nr_frames < rest->nr && rest->items[run.nr_frames].frame != RUNTIME_ITEM_ENTRY)
		run.nr_frames++;
	run.nr_items = run.nr_frames < rest->nr ? run.nr_frames + 1 : run.nr_frames;
	run.is_mark = run.nr_items == run.nr_frames && run.nr_frames <= 1;
	run.native = run.is_mark		       ? rest->next
		     : run.nr_items == run.nr_frames ? find_loop(merge, rest->next)
						     : rest->items[run.nr_frames].native;
	if (run.native == RUNTIME_ITEM_AT_LEAF)
		run.order = 0;
	else
		run.order = run.native < merge->nr_natives ? 2 * (uint64_t)run.native + !run.is_mark : UINT64_MAX;
	return run;
}

/* Gives a run at the native frame that its end refers to. A run may be empty: Perl code without a frame, such as a sort block. A run
 * without a native frame lies beyond the native stack: that ended early, was cut after the run was placed, or the run is on another stack,
 * from which the thread switched to this one. A mark goes before such a run. */
static int give_run(struct merge *merge, const struct rest *rest, const struct run *run)
{
	bool is_beyond = !run->is_mark && run->native >= merge->nr_natives && run->native != RUNTIME_ITEM_AT_LEAF,
	     is_placed = run->native < merge->nr_natives && run->native >= merge->next;
	int err = is_placed ? give_natives(merge, run->native) : is_beyond ? give_rest(merge, true) : 0;

	if (is_placed && !run->is_mark)
		merge->next = run->native + 1; /* the run replaces it */
	return err ? err : give_items(merge, rest->items, run->nr_frames);
}

static uint32_t split_runtimes(const struct runtime_stack *runtime, struct rest *rests)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < runtime->nr && nr < SONDE_RUNTIME_COUNT; i++) {
		if (!i || runtime->items[i].frame == RUNTIME_ITEM_OTHER)
			rests[nr++] = (struct rest){ .items = runtime->items + i + (runtime->items[i].frame == RUNTIME_ITEM_OTHER) };
		rests[nr - 1].nr += runtime->items[i].frame != RUNTIME_ITEM_OTHER;
	}
	return nr;
}

/* The runtimes' runs are each in order; of all of them, the innermost one is next. */
int stack_merge(uint32_t nr_natives, const struct runtime_stack *runtime, const struct stack_merge_sink *sink)
{
	struct merge merge = { .sink = sink, .nr_natives = nr_natives };
	struct rest rests[SONDE_RUNTIME_COUNT];
	uint32_t nr = split_runtimes(runtime, rests);
	int err = 0;

	while (!err) {
		struct run first = { .order = 0 };
		struct rest *of = NULL;

		for (uint32_t i = 0; i < nr; i++) {
			struct run run = rests[i].nr ? run_of(&merge, &rests[i]) : (struct run){ 0 };

			if (rests[i].nr && (!of || run.order < first.order)) {
				of = &rests[i];
				first = run;
			}
		}
		if (!of)
			break;
		err = give_run(&merge, of, &first);
		of->items += first.nr_items;
		of->nr -= first.nr_items;
		of->next = first.native < nr_natives ? first.native + !first.is_mark : of->next;
	}
	return err ? err : give_rest(&merge, false);
}
