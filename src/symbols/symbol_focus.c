// SPDX-License-Identifier: Apache-2.0
/* A symbol that is seen changes only the address next to its start and the one next to its end; symbol_focus_settle passes that on. */
#include "symbols/symbol_focus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* The number of addresses before `vaddr`. */
static uint32_t nr_before(const struct symbol_focus *focus, uint64_t vaddr)
{
	return vaddr ? array_count_starts(focus->places, focus->nr, sizeof(*focus->places), vaddr - 1) : 0;
}

static int compare_places(const void *left, const void *right)
{
	const struct symbol_place *a = left, *b = right;

	return a->elf_vaddr < b->elf_vaddr ? -1 : a->elf_vaddr > b->elf_vaddr;
}

int symbol_focus_init(struct symbol_focus *focus, const uint64_t *elf_vaddrs, size_t nr)
{
	*focus = (struct symbol_focus){ .places = calloc(nr + 1, sizeof(*focus->places)) };
	if (!focus->places || nr > UINT32_MAX)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		focus->places[i] = (struct symbol_place){ .elf_vaddr = elf_vaddrs[i], .next = UINT64_MAX };
	qsort(focus->places, nr, sizeof(*focus->places), compare_places);
	for (size_t i = 0; i < nr; i++) {
		if (!focus->nr || focus->places[i].elf_vaddr != focus->places[focus->nr - 1].elf_vaddr)
			focus->places[focus->nr++] = focus->places[i];
	}
	return 0;
}

void symbol_focus_done(struct symbol_focus *focus)
{
	free(focus->places);
	*focus = (struct symbol_focus){ 0 };
}

int symbol_focus_add(struct symbol_focus *focus, uint64_t elf_vaddr)
{
	uint32_t at = nr_before(focus, elf_vaddr);
	struct symbol_place *places;

	if (symbol_focus_find(focus, elf_vaddr))
		return 0;
	places = reallocarray(focus->places, focus->nr + 1, sizeof(*places));
	if (!places)
		return -ENOMEM;
	memmove(places + at + 1, places + at, (focus->nr - at) * sizeof(*places));
	places[at] = (struct symbol_place){ .elf_vaddr = elf_vaddr, .next = UINT64_MAX };
	focus->places = places;
	focus->nr++;
	return 0;
}

bool symbol_focus_has(const struct symbol_focus *focus, uint64_t start, uint64_t end)
{
	uint32_t at = nr_before(focus, start);

	return at < focus->nr && focus->places[at].elf_vaddr < end;
}

bool symbol_focus_matters(const struct symbol_focus *focus, uint64_t start, uint64_t end)
{
	uint32_t at = nr_before(focus, start), at_end;

	if ((at < focus->nr && start > focus->places[at].start) || (at && start < focus->places[at - 1].next))
		return true;
	at_end = end > start && at < focus->nr && end > focus->places[at].elf_vaddr ? nr_before(focus, end) : at;
	return end > start && at_end < focus->nr && end > focus->places[at_end].past;
}

void symbol_focus_see(struct symbol_focus *focus, uint64_t start, uint64_t end)
{
	uint32_t at = nr_before(focus, start), at_end;

	if (at < focus->nr && start > focus->places[at].start)
		focus->places[at].start = start;
	if (at && start < focus->places[at - 1].next)
		focus->places[at - 1].next = start;
	if (end <= start)
		return;
	at_end = nr_before(focus, end);
	if (at_end < focus->nr && end > focus->places[at_end].past)
		focus->places[at_end].past = end;
}

void symbol_focus_settle(struct symbol_focus *focus)
{
	struct symbol_place *places = focus->places;

	for (uint32_t i = 1; i < focus->nr; i++) {
		places[i].start = places[i - 1].start > places[i].start ? places[i - 1].start : places[i].start;
		places[i].past = places[i - 1].past > places[i].past ? places[i - 1].past : places[i].past;
	}
	for (uint32_t i = focus->nr; i-- > 1;)
		places[i - 1].next = places[i].next < places[i - 1].next ? places[i].next : places[i - 1].next;
}

bool symbol_focus_keeps(const struct symbol_focus *focus, uint64_t start, uint64_t end)
{
	uint32_t at = nr_before(focus, start);

	if (end <= start) /* it may have the size of another that starts there */
		return true;
	if (at == focus->nr)
		return false;
	if (focus->places[at].start == start || end > focus->places[at].elf_vaddr)
		return true;
	return focus->places[at].past == end; /* no address is between start and end */
}

uint64_t symbol_focus_next(const struct symbol_focus *focus, uint64_t start)
{
	uint32_t at = nr_before(focus, start);

	return at < focus->nr && focus->places[at].start == start ? focus->places[at].next : start;
}

const struct symbol_place *symbol_focus_find(const struct symbol_focus *focus, uint64_t elf_vaddr)
{
	uint32_t at = nr_before(focus, elf_vaddr);

	return at < focus->nr && focus->places[at].elf_vaddr == elf_vaddr ? &focus->places[at] : NULL;
}
