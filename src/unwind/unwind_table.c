// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwind_table.h"

#include <elf.h>
#include <errno.h>

#include "cfi/cfi.h"
#include "cfi/code_rows.h"
#include "cfi/native_image.h"
#include "pclntab/go_pclntab.h"
#include "unwind/greenlet_rows.h"
#include "unwind/spans.h"

struct builder {
	struct unwind_table *table;
	uint32_t nr_begun; /* blocks whose index entry is set */
};

void unwind_table_free(struct unwind_table *table)
{
	if (!table)
		return;
	if (table->rules)
		rule_table_drop(table->rules, table->rows, table->nr_rows);
	free(table->rows);
	free(table->blocks);
	free(table);
}

static void add_row(struct builder *builder, uint32_t rel, uint16_t rule)
{
	struct unwind_table *table = builder->table;
	uint32_t block = rel >> table->block_shift;

	if (table->nr_rows && rule == table->rows[table->nr_rows - 1].rule)
		return;
	while (builder->nr_begun <= block)
		table->blocks[builder->nr_begun++] = table->nr_rows;
	table->rows[table->nr_rows++] = (struct sonde_row){ .low = (uint16_t)(rel & ((1u << table->block_shift) - 1)), .rule = rule };
}

static int add_rows(void *arg, const struct span_piece *piece)
{
	struct builder *builder = arg;
	uint32_t base_rel = (uint32_t)(piece->base_vaddr - builder->table->base_vaddr); /* may wrap in a gap, which has one row */

	add_row(builder, (uint32_t)(piece->from_vaddr - builder->table->base_vaddr), piece->rows[0].rule);
	for (uint32_t i = 1; i < piece->nr_rows; i++)
		add_row(builder, base_rel + piece->rows[i].off, piece->rows[i].rule);
	return 0;
}

/* Collects one kind of CFI. If rows from another source exist, damage is ignored. */
static int collect_cfi(const struct elf_file *elf, enum cfi_format format, struct spans *spans, struct cfi_stats *stats, struct diag *diag)
{
	CLEANUP(cfi_section_done) struct cfi_section section = { 0 };
	bool is_extra = spans->nr_spans;
	int err = cfi_section_read(elf, format, is_extra ? NULL : diag, &section);

	if (!err)
		err = cfi_walk(&section, spans_take_row, spans, stats, is_extra ? NULL : diag);
	return err == -ENODATA || (is_extra && err == -EBADMSG) ? 0 : err;
}

/* Go's own table. Damage is ignored here too. */
static int collect_go(const struct elf_file *elf, struct spans *spans, struct cfi_stats *stats)
{
	CLEANUP(go_pclntab_freep) struct go_pclntab *go = NULL;
	int err = go_pclntab_read(elf, NULL, &go);

	if (!err)
		err = go_pclntab_walk(go, spans_take_row, spans, stats);
	return err == -ENOMEM ? err : 0;
}

#define MIN_GAP_BYTES 16 /* less is padding */

struct gaps {
	struct code_gap *gaps;
	size_t nr, max;
	uint64_t open_vaddr; /* start of the open gap; UINT64_MAX: none */
	const struct elf_file *elf;
};

static void gaps_done(struct gaps *gaps)
{
	free(gaps->gaps);
}

/* Adds the parts of a range without rows that are code. */
static int add_gap(struct gaps *gaps, uint64_t start_vaddr, uint64_t end_vaddr)
{
	for (uint32_t i = 0; i < elf_file_nr_segments(gaps->elf); i++) {
		const struct elf_segment *segment = elf_file_segment(gaps->elf, i);
		uint64_t start = start_vaddr > segment->vaddr ? start_vaddr : segment->vaddr;
		uint64_t end = end_vaddr < segment->vaddr + segment->file_size ? end_vaddr : segment->vaddr + segment->file_size;

		if (!(segment->flags & PF_X) || end < start || end - start < MIN_GAP_BYTES)
			continue;
		if (gaps->nr == gaps->max) {
			size_t max = gaps->max ? gaps->max * 2 : 256;
			struct code_gap *more = realloc(gaps->gaps, max * sizeof(*more));

			if (!more)
				return -ENOMEM;
			gaps->gaps = more;
			gaps->max = max;
		}
		gaps->gaps[gaps->nr++] = (struct code_gap){ start, end };
	}
	return 0;
}

static int compare_gaps(const void *a, const void *b)
{
	const struct code_gap *left = a, *right = b;

	return (left->start_vaddr > right->start_vaddr) - (left->start_vaddr < right->start_vaddr);
}

static int take_gap(void *arg, const struct span_piece *piece)
{
	struct gaps *gaps = arg;
	uint64_t open = gaps->open_vaddr;
	bool is_gap = piece->rows[0].rule == SONDE_RULE_NONE || piece->rows[0].rule == SONDE_RULE_WIDE;

	gaps->open_vaddr = is_gap ? piece->from_vaddr : UINT64_MAX;
	return open == UINT64_MAX ? 0 : add_gap(gaps, open, piece->from_vaddr);
}

/* Takes a range out of the gaps. */
static int cut_gaps(struct gaps *gaps, const struct code_gap *range)
{
	size_t nr = gaps->nr;
	int err = 0;

	for (size_t i = 0; !err && i < nr; i++) {
		struct code_gap *gap = &gaps->gaps[i];
		uint64_t end = gap->end_vaddr;

		if (range->start_vaddr >= end || range->end_vaddr <= gap->start_vaddr)
			continue;
		gap->end_vaddr = range->start_vaddr > gap->start_vaddr ? range->start_vaddr : gap->start_vaddr;
		if (range->end_vaddr < end)
			err = add_gap(gaps, range->end_vaddr, end);
	}
	qsort(gaps->gaps, gaps->nr, sizeof(*gaps->gaps), compare_gaps);
	return err;
}

/* Marks large gaps that remain between functions with rows from code as SONDE_RULE_WIDE: other code (an interpreter's builtins), whose
 * frame pointers are trusted. `start`, `end`: range of all other rows. In a file without any, all code counts as such. */
static int take_other_code(const struct gaps *gaps, uint64_t start, uint64_t end, struct spans *spans)
{
	static const struct sonde_rule wide = { .kind = SONDE_RULE_KIND_WIDE };
	int err = 0;

	for (size_t i = 0; !err && i < gaps->nr; i++) {
		const struct code_gap *gap = &gaps->gaps[i];

		if (start < end &&
		    (gap->start_vaddr < start || gap->end_vaddr > end || gap->end_vaddr - gap->start_vaddr < SONDE_WIDE_GAP_BYTES))
			continue;
		err = spans_take_row(spans, gap->start_vaddr, &wide);
		if (!err)
			err = spans_take_row(spans, gap->end_vaddr, NULL);
	}
	return err;
}

/* Adds rows from the code itself, where there is no other source. */
static int collect_code(const struct elf_file *elf, struct spans *spans)
{
	CLEANUP(gaps_done) struct gaps gaps = { .open_vaddr = UINT64_MAX, .elf = elf };
	struct cfi_stats stats = { 0 };
	struct code_gap image = { 0 };
	uint64_t start, end;
	size_t nr_others = spans->nr_spans;
	int err;

	spans_range(spans, &start, &end);
	err = add_gap(&gaps, 0, start);
	if (!err)
		err = spans_each(spans, take_gap, &gaps);
	if (!err)
		err = add_gap(&gaps, end, UINT64_MAX);
	if (!err)
		err = native_image_walk(elf, gaps.gaps, gaps.nr, spans_take_row, spans, &stats, &image);
	if (!err && image.end_vaddr) /* what is not proved there is no other code */
		err = cut_gaps(&gaps, &image);
	if (!err)
		err = code_rows_walk(elf, gaps.gaps, gaps.nr, spans_take_row, spans, &stats);
	if (!err && spans->nr_spans > nr_others)
		err = take_other_code(&gaps, start, end, spans);
	return err;
}

/* Reads all sources; the earlier one wins. Greenlet's own rules contradict the CFI of its functions. A program built without .eh_frame
 * still contains that of the C library's start code. A Go program's .debug_frame has less than its .gopclntab, which also says where stacks
 * end and switch. */
static int collect(const struct elf_file *elf, struct spans *spans, struct cfi_stats *ret_stats, struct diag *diag)
{
	struct cfi_stats stats[3] = { 0 };
	int err = greenlet_walk(elf, spans_take_row, spans);

	if (!err)
		err = collect_cfi(elf, CFI_EH_FRAME, spans, &stats[0], diag);
	if (!err)
		err = collect_go(elf, spans, &stats[1]);
	if (!err)
		err = collect_cfi(elf, CFI_DEBUG_FRAME, spans, &stats[2], diag);
	if (!err)
		err = collect_code(elf, spans);
	for (size_t i = 0; i < ARRAY_SIZE(stats); i++) {
		ret_stats->nr_unsupported += stats[i].nr_unsupported;
		ret_stats->nr_bad_fdes += stats[i].nr_bad_fdes;
	}
	if (err)
		return err;
	return spans->nr_spans ? 0 : diag_errno(diag, ENODATA, "no call frame information");
}

/* Chooses the smallest block size that the index allows. */
static int lay_out(struct unwind_table *table, uint64_t start_vaddr, uint64_t end_vaddr)
{
	for (table->block_shift = SONDE_MIN_BLOCK_SHIFT; table->block_shift <= SONDE_MAX_BLOCK_SHIFT; table->block_shift++) {
		uint64_t nr_blocks;

		table->base_vaddr = start_vaddr >> table->block_shift << table->block_shift;
		nr_blocks = ((end_vaddr - table->base_vaddr) >> table->block_shift) + 1;
		if (nr_blocks <= SONDE_MAX_BLOCKS) {
			table->nr_blocks = (uint32_t)nr_blocks;
			return 0;
		}
	}
	return -EFBIG;
}

static int build_rows(struct spans *spans, struct unwind_table *table)
{
	struct builder builder = { .table = table };
	struct sonde_row *rows;
	uint64_t start_vaddr, end_vaddr;
	int err;

	spans_range(spans, &start_vaddr, &end_vaddr);
	err = lay_out(table, start_vaddr, end_vaddr);
	if (err)
		return err;
	table->rows = malloc((spans_max_rows(spans) + 2) * sizeof(*table->rows)); /* + before the first and behind the last span */
	table->blocks = calloc(table->nr_blocks + 1, sizeof(*table->blocks));
	if (!table->rows || !table->blocks)
		return -ENOMEM;
	if (table->base_vaddr != start_vaddr)
		add_row(&builder, 0, SONDE_RULE_NONE);
	err = spans_each(spans, add_rows, &builder);
	if (err)
		return err;
	add_row(&builder, (uint32_t)(end_vaddr - table->base_vaddr), SONDE_RULE_NONE);
	while (builder.nr_begun <= table->nr_blocks)
		table->blocks[builder.nr_begun++] = table->nr_rows;
	rows = realloc(table->rows, table->nr_rows * sizeof(*rows)); /* frees the memory that equal neighbours and gaps did not need */
	if (rows)
		table->rows = rows;
	return 0;
}

int unwind_table_build_for(uint16_t machine, const struct elf_file *elf, struct rule_table *rules, struct diag *diag,
			   struct unwind_table **ret_table)
{
	CLEANUP(spans_done) struct spans spans = { .rules = rules };
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	struct cfi_stats stats = { 0 };
	int err;

	if (elf_file_machine(elf) != machine)
		return diag_errno(diag, ENODATA, "made for another machine");
	err = collect(elf, &spans, &stats, diag);
	if (err)
		return err;
	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	err = build_rows(&spans, table);
	if (err)
		return diag_errno(diag, -err, "unwind table cannot be built");
	rule_table_hold(rules, table->rows, table->nr_rows);
	table->rules = rules;
	table->nr_unsupported = stats.nr_unsupported;
	table->nr_bad_fdes = stats.nr_bad_fdes;
	*ret_table = MOVE(table);
	return 0;
}

int unwind_table_build(const struct elf_file *elf, struct rule_table *rules, struct diag *diag, struct unwind_table **ret_table)
{
#ifdef __aarch64__
	return unwind_table_build_for(EM_AARCH64, elf, rules, diag, ret_table);
#else
	return unwind_table_build_for(EM_X86_64, elf, rules, diag, ret_table);
#endif
}

uint16_t unwind_table_find(const struct unwind_table *table, uint64_t elf_vaddr)
{
	uint64_t rel = elf_vaddr - table->base_vaddr, block = rel >> table->block_shift;
	uint32_t low = (uint32_t)(rel & ((1u << table->block_shift) - 1)), row, end;

	if (elf_vaddr < table->base_vaddr || block >= table->nr_blocks)
		return SONDE_RULE_NONE;
	row = table->blocks[block];
	end = table->blocks[block + 1];
	while (row < end && table->rows[row].low <= low)
		row++;
	return table->rows[row - 1].rule; /* the first row is at the start of the first block */
}
