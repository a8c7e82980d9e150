// SPDX-License-Identifier: Apache-2.0
/* Finds the ends of symbols without a size in the file. Call frame information is certain; then the instructions decide; the rest is a
 * guess from the symbols around. */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "cfi/cfi.h"
#include "cfi/code_end.h"
#include "symbols/symbol_list.h"
#include "symbols/symbols.h"

#define MAX_FDES       ((size_t)8 << 20)
#define MAX_CODE_BYTES 4096u /* read at most, of a routine with no other bound */

struct code_range {
	uint64_t start, end;
};

struct ends {
	struct symbol_list *list;
	const struct elf_file *elf;
	struct buffer fdes; /* of struct code_range, ascending; read on first use */
	bool fdes_read;
	bool hides_locals; /* the file has no local symbols: code after a symbol need not have a name */
};

static void ends_done(struct ends *ends)
{
	buffer_done(&ends->fdes);
}

static int take_range(void *arg, uint64_t start, uint64_t end)
{
	struct ends *ends = arg;
	const struct code_range fde = { .start = start, .end = end };

	buffer_append(&ends->fdes, &fde, sizeof(fde));
	return ends->fdes.err;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct code_range *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* If the section is damaged, no FDE is used. */
static void read_fdes(struct ends *ends)
{
	struct cfi_section section;

	ends->fdes_read = true;
	if (cfi_section_read(ends->elf, CFI_EH_FRAME, NULL, &section))
		return;
	if (!cfi_walk_ranges(&section, take_range, ends, NULL) && ends->fdes.size)
		qsort(ends->fdes.data, ends->fdes.size / sizeof(struct code_range), sizeof(struct code_range), compare_ranges);
	else
		ends->fdes.size = 0;
	cfi_section_done(&section);
}

/* The end of the FDE that contains an address; else 0, and in *ret_next the start of the next one. */
static uint64_t fde_end(struct ends *ends, uint64_t vaddr, uint64_t *ret_next)
{
	const struct code_range *fdes;
	uint32_t nr, nr_before;

	if (!ends->fdes_read)
		read_fdes(ends);
	fdes = (const struct code_range *)ends->fdes.data;
	nr = (uint32_t)(ends->fdes.size / sizeof(*fdes));
	nr_before = array_count_starts(fdes, nr, sizeof(*fdes), vaddr);
	*ret_next = nr_before < nr ? fdes[nr_before].start : UINT64_MAX;
	return nr_before && vaddr < fdes[nr_before - 1].end ? fdes[nr_before - 1].end : 0;
}

/* The address up to which the instructions continue from `start`, at most `end`. */
static uint64_t end_by_code(const struct ends *ends, uint64_t start, uint64_t end)
{
	uint8_t code[MAX_CODE_BYTES];
	size_t size = end - start < sizeof(code) ? end - start : sizeof(code);

	for (uint32_t i = 0; i < elf_file_nr_segments(ends->elf); i++) {
		const struct elf_segment *segment = elf_file_segment(ends->elf, i);

		if (!(segment->flags & PF_X) || start < segment->vaddr || start - segment->vaddr >= segment->file_size)
			continue;
		if (size > segment->file_size - (start - segment->vaddr))
			size = segment->file_size - (start - segment->vaddr);
		if (elf_file_read_at(ends->elf, segment->file_off + (start - segment->vaddr), code, size))
			return start;
		return start + code_end_find(elf_file_machine(ends->elf), code, size);
	}
	return start;
}

/* The end of a symbol without a size in the file. `next_start`: where the next symbol starts; `cover`: the greatest end of the sized
 * symbols that start before it. Returns its start if it has no extent at all. */
static uint64_t guess_end(struct ends *ends, const struct raw_symbol *symbol, uint64_t next_start, uint64_t cover)
{
	uint64_t end, next_fde, covering;

	if ((symbol->start < cover && symbol->is_label) || next_start == symbol->start)
		return symbol->start; /* a location in the enclosing function, or not asked for */
	if (__builtin_add_overflow(symbol->start, SYMBOL_MAX_GUESSED_BYTES, &end))
		end = UINT64_MAX;
	covering = fde_end(ends, symbol->start, &next_fde);
	if (covering)
		end = covering;
	else if (next_fde < end)
		end = next_fde;
	if (next_start < end)
		end = next_start;
	if (symbol->start < cover && cover < end)
		end = cover;
	if (symbol->section_end && symbol->section_end < end)
		end = symbol->section_end;
	if (end <= symbol->start)
		return symbol->start;
	return covering || !ends->hides_locals ? end : end_by_code(ends, symbol->start, end);
}

/* Where the symbol after those that start at `start` does; `next`: its number, if all symbols are in the list. Returns `start` for symbols
 * that are there for their ends. */
static uint64_t next_of(const struct symbol_list *list, uint64_t start, uint32_t next)
{
	if (list->focus)
		return symbol_focus_next(list->focus, start);
	return next < list->nr ? list->symbols[next].start : UINT64_MAX;
}

/* The symbols [first, next) have the same start, the best one is last. Gives each an end. The extent stays empty for a symbol that a better
 * one covers as far, and for labels (like __start_text) beside a symbol with a size. `group_end`: the greatest end among them. */
static void settle_group(struct ends *ends, uint32_t first, uint32_t next, uint64_t group_end, uint64_t cover)
{
	struct symbol_list *list = ends->list;
	uint64_t start = list->symbols[first].start, end = start, next_start = next_of(list, start, next);

	for (uint32_t i = next; i-- > first;) {
		struct raw_symbol *symbol = &list->symbols[i];

		if (symbol->end == start && !(symbol->is_label && group_end > start))
			symbol->end = group_end > start ? group_end : guess_end(ends, symbol, next_start, cover);
		if (symbol->end > end)
			end = symbol->end;
		else
			symbol->end = start;
	}
}

int symbol_list_settle(struct symbol_list *list, const struct elf_file *elf)
{
	CLEANUP(ends_done)
	struct ends ends = { .list = list,
			     .elf = elf,
			     .fdes = BUFFER_INIT(MAX_FDES * sizeof(struct code_range)),
			     .hides_locals = !list->has_local };
	uint64_t cover = 0;
	uint32_t next;

	for (uint32_t first = 0; first < list->nr; first = next) {
		uint64_t group_end = 0;

		for (next = first; next < list->nr && list->symbols[next].start == list->symbols[first].start; next++)
			group_end = list->symbols[next].end > group_end ? list->symbols[next].end : group_end;
		settle_group(&ends, first, next, group_end, cover);
		cover = group_end > cover ? group_end : cover;
	}
	return ends.fdes.err == -ENOMEM ? -ENOMEM : 0;
}
