// SPDX-License-Identifier: Apache-2.0
/* Turns the pieces, which may overlap, into disjoint ranges: a sweep over their starts in order, with a heap of the pieces that cover the
 * current address, the latest on top. n log n; a look-up is one binary search. */
#include "symbolize/code_ranges.h"

#include <errno.h>

#include "base/array.h"

#define NO_PIECE UINT32_MAX

struct sweep {
	const struct code_piece *pieces;
	uint32_t nr_pieces;
	const uint32_t *order; /* piece numbers, sorted by start */
	struct code_ranges ranges;
};

void code_ranges_done(struct code_ranges *ranges)
{
	free(ranges->starts);
	free(ranges->owners);
	*ranges = (struct code_ranges){ 0 };
}

static uint64_t end_of(const struct sweep *sweep, uint32_t i)
{
	return sweep->pieces[i].start + sweep->pieces[i].size_bytes;
}

static int compare_starts(const void *left, const void *right, void *arg)
{
	const struct code_piece *pieces = arg;
	uint64_t a = pieces[*(const uint32_t *)left].start, b = pieces[*(const uint32_t *)right].start;

	return a < b ? -1 : a > b;
}

/* A binary heap of piece numbers, the greatest on top. */
struct heap {
	uint32_t *items, nr;
};

static void heap_push(struct heap *heap, uint32_t item)
{
	uint32_t at = heap->nr++;

	for (; at > 0 && heap->items[(at - 1) / 2] < item; at = (at - 1) / 2)
		heap->items[at] = heap->items[(at - 1) / 2];
	heap->items[at] = item;
}

static void heap_pop(struct heap *heap)
{
	uint32_t item = heap->items[--heap->nr], at = 0, child;

	for (; (child = 2 * at + 1) < heap->nr; at = child) {
		if (child + 1 < heap->nr && heap->items[child + 1] > heap->items[child])
			child++;
		if (heap->items[child] <= item)
			break;
		heap->items[at] = heap->items[child];
	}
	heap->items[at] = item;
}

static void add_range(struct code_ranges *ranges, uint64_t start, uint32_t owner)
{
	if (ranges->nr && ranges->owners[ranges->nr - 1] == owner)
		return;
	ranges->starts[ranges->nr] = start;
	ranges->owners[ranges->nr++] = owner;
}

/* Each round advances to a start or an end, so there are at most two ranges per piece. */
static void run_sweep(struct sweep *sweep, struct heap *covering)
{
	uint64_t pc = 0;

	for (uint32_t next = 0; next < sweep->nr_pieces || covering->nr;) {
		if (!covering->nr)
			pc = sweep->pieces[sweep->order[next]].start;
		while (next < sweep->nr_pieces && sweep->pieces[sweep->order[next]].start <= pc)
			heap_push(covering, sweep->order[next++]);
		while (covering->nr && end_of(sweep, covering->items[0]) <= pc)
			heap_pop(covering);
		add_range(&sweep->ranges, pc, covering->nr ? covering->items[0] : NO_PIECE);
		if (!covering->nr) /* a gap, or the end */
			continue;
		pc = end_of(sweep, covering->items[0]);
		if (next < sweep->nr_pieces && sweep->pieces[sweep->order[next]].start < pc)
			pc = sweep->pieces[sweep->order[next]].start;
	}
}

int code_ranges_make(const struct code_piece *pieces, uint32_t nr_pieces, struct code_ranges *ret_ranges)
{
	CLEANUP(freep) uint32_t *order = calloc(nr_pieces, sizeof(*order));
	CLEANUP(freep) uint32_t *room = calloc(nr_pieces, sizeof(*room));
	struct sweep sweep = { .pieces = pieces, .nr_pieces = nr_pieces, .order = order };
	struct heap covering = { .items = room };

	sweep.ranges.starts = calloc((size_t)nr_pieces * 2, sizeof(*sweep.ranges.starts));
	sweep.ranges.owners = calloc((size_t)nr_pieces * 2, sizeof(*sweep.ranges.owners));
	if (!order || !room || !sweep.ranges.starts || !sweep.ranges.owners) {
		code_ranges_done(&sweep.ranges);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < nr_pieces; i++)
		order[i] = i;
	qsort_r(order, nr_pieces, sizeof(*order), compare_starts, (void *)pieces);
	run_sweep(&sweep, &covering);
	array_shrink(&sweep.ranges.starts, sweep.ranges.nr * sizeof(*sweep.ranges.starts));
	array_shrink(&sweep.ranges.owners, sweep.ranges.nr * sizeof(*sweep.ranges.owners));
	*ret_ranges = sweep.ranges;
	return 0;
}

int code_ranges_find(const struct code_ranges *ranges, uint64_t pc, uint32_t *ret_piece)
{
	uint32_t nr = array_count_at_most(ranges->starts, ranges->nr, pc);

	if (nr == 0 || ranges->owners[nr - 1] == NO_PIECE)
		return -ENOENT;
	*ret_piece = ranges->owners[nr - 1];
	return 0;
}
