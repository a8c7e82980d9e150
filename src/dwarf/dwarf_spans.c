// SPDX-License-Identifier: Apache-2.0
#include "dwarf/dwarf_spans.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"

#define MAX_SPANS (1u << 23)
#define MAX_STEPS 1024 /* of a search: for hostile files; compilers nest some dozens */

int dwarf_spans_add(struct dwarf_spans *spans, uint64_t start, uint64_t end, uint32_t owner)
{
	if (start >= end)
		return 0;
	if (spans->nr == spans->capacity) {
		uint32_t capacity = spans->capacity ? spans->capacity * 2 : 64;
		struct dwarf_span *at = capacity <= MAX_SPANS ? reallocarray(spans->at, capacity, sizeof(*at)) : NULL;

		if (!at)
			return capacity <= MAX_SPANS ? -ENOMEM : -EFBIG;
		spans->at = at;
		spans->capacity = capacity;
	}
	spans->at[spans->nr++] = (struct dwarf_span){ .start = start, .end = end, .owner = owner, .link = DWARF_NONE };
	return 0;
}

static int by_place(const void *left, const void *right)
{
	const struct dwarf_span *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return a->owner < b->owner ? -1 : a->owner > b->owner;
}

int dwarf_spans_seal(struct dwarf_spans *spans)
{
	uint32_t open = DWARF_NONE; /* the last one that has not ended; its link is the one before it */

	if (spans->nr)
		qsort(spans->at, spans->nr, sizeof(*spans->at), by_place);
	for (uint32_t i = 0; i < spans->nr; i++) {
		while (open != DWARF_NONE && spans->at[open].end <= spans->at[i].start)
			open = spans->at[open].link;
		spans->at[i].link = open;
		open = i;
	}
	if (spans->nr && spans->nr < spans->capacity) {
		struct dwarf_span *at = reallocarray(spans->at, spans->nr, sizeof(*at));

		if (!at)
			return -ENOMEM;
		spans->at = at;
		spans->capacity = spans->nr;
	}
	return 0;
}

/* The number of spans that start at or before the address. */
static uint32_t nr_before(const struct dwarf_spans *spans, uint64_t elf_vaddr)
{
	return array_count_starts(spans->at, spans->nr, sizeof(*spans->at), elf_vaddr);
}

uint32_t dwarf_spans_find(const struct dwarf_spans *spans, uint64_t elf_vaddr)
{
	uint32_t nr = nr_before(spans, elf_vaddr), at = nr ? nr - 1 : DWARF_NONE;

	for (unsigned int i = 0; i < MAX_STEPS && at != DWARF_NONE; i++) {
		if (elf_vaddr < spans->at[at].end)
			return spans->at[at].owner;
		at = spans->at[at].link;
	}
	return DWARF_NONE;
}

static void raise(uint64_t *value, uint64_t to)
{
	if (*value < to)
		*value = to;
}

static void lower(uint64_t *value, uint64_t to)
{
	if (*value > to)
		*value = to;
}

void dwarf_spans_narrow(const struct dwarf_spans *spans, uint64_t elf_vaddr, uint64_t *start, uint64_t *end)
{
	uint32_t nr = nr_before(spans, elf_vaddr), at = nr ? nr - 1 : DWARF_NONE;

	raise(start, nr ? spans->at[at].start : 0);
	lower(end, nr < spans->nr ? spans->at[nr].start : UINT64_MAX);
	for (unsigned int i = 0; i < MAX_STEPS && at != DWARF_NONE; i++, at = spans->at[at].link) {
		if (elf_vaddr < spans->at[at].end) {
			lower(end, spans->at[at].end);
			return;
		}
		raise(start, spans->at[at].end);
	}
}

void dwarf_spans_done(struct dwarf_spans *spans)
{
	free(spans->at);
	memset(spans, 0, sizeof(*spans));
}
