// SPDX-License-Identifier: Apache-2.0
#include "unwind/spans.h"

#include <errno.h>
#include <string.h>

#define RADIX_BITS 11
#define RADIX_MASK ((1u << RADIX_BITS) - 1)

struct key {
	uint32_t start_rel;
	uint32_t span;
};

void spans_done(struct spans *spans)
{
	free(spans->spans);
	free(spans->rows);
	*spans = (struct spans){ 0 };
}

static int grow(void *array, uint32_t *max, size_t entry_size)
{
	uint64_t bigger = *max ? (uint64_t)*max * 2 : 1024;
	void *moved;

	if (bigger > UINT32_MAX / 2)
		return -EFBIG;
	moved = realloc(*(void **)array, bigger * entry_size);
	if (!moved)
		return -ENOMEM;
	*(void **)array = moved;
	*max = (uint32_t)bigger;
	return 0;
}

static int open_span(struct spans *spans, uint64_t start_vaddr)
{
	if (spans->nr_spans == spans->max_spans) {
		int err = grow(&spans->spans, &spans->max_spans, sizeof(*spans->spans));

		if (err)
			return err;
	}
	spans->spans[spans->nr_spans++] = (struct span){
		.start_vaddr = start_vaddr,
		.first_row = spans->nr_rows,
		.cursor = spans->nr_rows,
	};
	spans->is_open = true;
	return 0;
}

static void close_span(struct spans *spans, uint64_t end_vaddr)
{
	struct span *span = &spans->spans[spans->nr_spans - 1];

	span->end_vaddr = end_vaddr;
	span->end_row = spans->nr_rows;
	if (spans->nr_spans == 1 || span->start_vaddr < spans->start_vaddr)
		spans->start_vaddr = span->start_vaddr;
	if (end_vaddr > spans->end_vaddr)
		spans->end_vaddr = end_vaddr;
	spans->is_open = false;
}

int spans_take_row(void *arg, uint64_t start_vaddr, const struct sonde_rule *rule)
{
	struct spans *spans = arg;
	uint64_t off;
	uint16_t number;
	int err;

	if (!rule) {
		close_span(spans, start_vaddr);
		return 0;
	}
	if (!spans->is_open) {
		err = open_span(spans, start_vaddr);
		if (err)
			return err;
	}
	off = start_vaddr - spans->spans[spans->nr_spans - 1].start_vaddr;
	if (off > UINT32_MAX)
		return -EFBIG;
	if (!off) /* the first row, or one that revokes all earlier rows of the FDE */
		spans->nr_rows = spans->spans[spans->nr_spans - 1].first_row;
	number = rule_table_number(spans->rules, rule, 0);
	if (off && spans->rows[spans->nr_rows - 1].rule == number)
		return 0;
	if (spans->nr_rows == spans->max_rows) {
		err = grow(&spans->rows, &spans->max_rows, sizeof(*spans->rows));
		if (err)
			return err;
	}
	spans->rows[spans->nr_rows++] = (struct span_row){ .off = (uint32_t)off, .rule = number };
	return 0;
}

void spans_range(const struct spans *spans, uint64_t *ret_start, uint64_t *ret_end)
{
	*ret_start = spans->nr_spans ? spans->start_vaddr : 0;
	*ret_end = spans->end_vaddr;
}

uint64_t spans_max_rows(const struct spans *spans)
{
	/* Each row once; each span is cut at most once per start and end of a span; and as many gaps as spans. */
	return (uint64_t)spans->nr_rows + (uint64_t)spans->nr_spans * 3;
}

/* Sorts by eleven bits, stable. */
static void sort_pass(const struct key *from, struct key *to, uint32_t nr, unsigned int shift)
{
	uint32_t counts[RADIX_MASK + 1] = { 0 }, sum = 0;

	for (uint32_t i = 0; i < nr; i++)
		counts[from[i].start_rel >> shift & RADIX_MASK]++;
	for (uint32_t i = 0; i <= RADIX_MASK; i++) {
		uint32_t count = counts[i];

		counts[i] = sum;
		sum += count;
	}
	for (uint32_t i = 0; i < nr; i++)
		to[counts[from[i].start_rel >> shift & RADIX_MASK]++] = from[i];
}

/* Sorts the spans by start; those with equal start stay in the section's order. The caller frees *ret_keys. */
static int sort_spans(const struct spans *spans, uint64_t base_vaddr, struct key **ret_keys)
{
	CLEANUP(freep) struct key *keys = malloc(spans->nr_spans * sizeof(*keys));
	CLEANUP(freep) struct key *other = NULL;
	uint32_t highest = 0;
	bool is_sorted = true;

	if (!keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < spans->nr_spans; i++) {
		keys[i] = (struct key){ .start_rel = (uint32_t)(spans->spans[i].start_vaddr - base_vaddr), .span = i };
		is_sorted &= keys[i].start_rel >= highest;
		if (keys[i].start_rel > highest)
			highest = keys[i].start_rel;
	}
	if (!is_sorted) {
		other = malloc(spans->nr_spans * sizeof(*other));
		if (!other)
			return -ENOMEM;
		for (unsigned int shift = 0; shift < 32 && highest >> shift; shift += RADIX_BITS) {
			struct key *sorted = other;

			sort_pass(keys, sorted, spans->nr_spans, shift);
			other = keys;
			keys = sorted;
		}
	}
	*ret_keys = MOVE(keys);
	return 0;
}

/* A binary heap of span numbers, the smallest (earliest in the section) on top. */
static void heap_push(uint32_t *heap, uint32_t *nr, uint32_t span)
{
	uint32_t i = (*nr)++;

	for (; i && heap[(i - 1) / 2] > span; i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = span;
}

static void heap_pop(uint32_t *heap, uint32_t *nr)
{
	uint32_t last = heap[--*nr], i = 0;

	for (;;) {
		uint32_t child = i * 2 + 1;

		if (child + 1 < *nr && heap[child + 1] < heap[child])
			child++;
		if (child >= *nr || heap[child] >= last)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
}

/* The part of a span from `from` up to `to`; both only increase from call to call. */
static struct span_piece cut_piece(const struct spans *spans, struct span *span, uint64_t from, uint64_t to)
{
	const struct span_row *rows = spans->rows;
	uint32_t first = span->cursor, end = span->end_row;

	while (first + 1 < end && rows[first + 1].off <= from - span->start_vaddr)
		first++;
	if (to < span->end_vaddr) {
		end = first + 1;
		while (end < span->end_row && rows[end].off < to - span->start_vaddr)
			end++;
	}
	span->cursor = end - 1;
	return (struct span_piece){
		.base_vaddr = span->start_vaddr,
		.from_vaddr = from,
		.rows = rows + first,
		.nr_rows = end - first,
	};
}

static int sweep(struct spans *spans, const struct key *keys, uint32_t *heap, span_piece_fn piece_fn, void *arg)
{
	static const struct span_row none = { .rule = SONDE_RULE_NONE }, wide = { .rule = SONDE_RULE_WIDE };
	uint64_t pos = spans->start_vaddr;
	uint32_t next = 0, nr_heap = 0;
	int err = 0;

	while (!err && (next < spans->nr_spans || nr_heap)) {
		struct span_piece piece = { .from_vaddr = pos, .rows = &none, .nr_rows = 1 };
		uint64_t next_start;

		while (next < spans->nr_spans && spans->spans[keys[next].span].start_vaddr <= pos)
			heap_push(heap, &nr_heap, keys[next++].span);
		while (nr_heap && spans->spans[heap[0]].end_vaddr <= pos)
			heap_pop(heap, &nr_heap);
		next_start = next < spans->nr_spans ? spans->spans[keys[next].span].start_vaddr : UINT64_MAX;
		if (nr_heap) {
			struct span *top = &spans->spans[heap[0]];

			pos = top->end_vaddr < next_start ? top->end_vaddr : next_start;
			piece = cut_piece(spans, top, piece.from_vaddr, pos);
		} else if (next < spans->nr_spans) {
			if (next_start - pos >= SONDE_WIDE_GAP_BYTES)
				piece.rows = &wide;
			pos = next_start;
		} else {
			break;
		}
		err = piece_fn(arg, &piece);
	}
	return err;
}

int spans_each(struct spans *spans, span_piece_fn piece, void *arg)
{
	CLEANUP(freep) struct key *keys = NULL;
	CLEANUP(freep) uint32_t *heap = NULL;
	uint64_t start, end;
	int err;

	if (!spans->nr_spans)
		return 0;
	spans_range(spans, &start, &end);
	if (end - start > UINT32_MAX)
		return -EFBIG;
	err = sort_spans(spans, start, &keys);
	if (err)
		return err;
	for (uint32_t i = 0; i < spans->nr_spans; i++)
		spans->spans[i].cursor = spans->spans[i].first_row;
	heap = malloc(spans->nr_spans * sizeof(*heap));
	return heap ? sweep(spans, keys, heap, piece, arg) : -ENOMEM;
}
