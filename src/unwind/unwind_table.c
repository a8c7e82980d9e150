// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwind_table.h"

#include <elf.h>
#include <errno.h>

#include "elf/cfi.h"
#include "unwind/spans.h"

#define MAX_LOW 0xffffu /* of a row in its bucket */

struct builder {
	struct unwind_table *table;
	uint32_t max_buckets; /* allocated, one more for the closing entry */
	uint16_t last_rule;
};

void unwind_table_free(struct unwind_table *table)
{
	if (!table)
		return;
	free(table->rows);
	free(table->buckets);
	free(table);
}

static int open_bucket(struct builder *builder, uint32_t start_rel)
{
	struct unwind_table *table = builder->table;

	if (table->nr_buckets == SONDE_MAX_BUCKETS)
		return -EFBIG;
	if (table->nr_buckets == builder->max_buckets) {
		uint32_t bigger = builder->max_buckets ? builder->max_buckets * 2 : 64;
		struct sonde_bucket *buckets = realloc(table->buckets, (bigger + 1) * sizeof(*buckets));

		if (!buckets)
			return -ENOMEM;
		table->buckets = buckets;
		builder->max_buckets = bigger;
	}
	table->buckets[table->nr_buckets++] = (struct sonde_bucket){ .start_rel = start_rel, .rows_pos = table->nr_rows };
	return 0;
}

static int add_rows(void *arg, const struct span_piece *piece)
{
	struct builder *builder = arg;
	struct unwind_table *table = builder->table;
	struct sonde_bucket *bucket = table->nr_buckets ? &table->buckets[table->nr_buckets - 1] : NULL;
	uint32_t base_rel = (uint32_t)(piece->base_vaddr - table->base_vaddr); /* may wrap in a gap, which has one row */

	for (uint32_t i = 0; i < piece->nr_rows; i++) {
		uint32_t rel = i ? base_rel + piece->rows[i].off : (uint32_t)(piece->from_vaddr - table->base_vaddr);
		uint16_t rule = piece->rows[i].rule;

		if (bucket && rule == builder->last_rule)
			continue;
		if (!bucket || bucket->nr_rows == SONDE_BUCKET_ROWS || rel - bucket->start_rel > MAX_LOW) {
			int err = open_bucket(builder, rel);

			if (err)
				return err;
			bucket = &table->buckets[table->nr_buckets - 1];
		}
		table->rows[table->nr_rows++] = (struct sonde_row){ .low = (uint16_t)(rel - bucket->start_rel), .rule = rule };
		bucket->nr_rows++;
		builder->last_rule = rule;
	}
	return 0;
}

/* Both kinds of CFI are read: a program built without .eh_frame still has that of the C library's start code, and what its own
 * .debug_frame says is added to it. */
static int collect(const struct elf_file *elf, struct spans *spans, struct cfi_stats *ret_stats, struct diag *diag)
{
	static const enum cfi_format formats[] = { CFI_EH_FRAME, CFI_DEBUG_FRAME };

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		CLEANUP(cfi_section_done) struct cfi_section section = { 0 };
		struct cfi_stats stats = { 0 };
		bool is_extra = spans->nr_spans; /* damage to it takes nothing from the rows that are there */
		int err = cfi_section_read(elf, formats[i], is_extra ? NULL : diag, &section);

		if (!err)
			err = cfi_walk(&section, spans_take_row, spans, &stats, is_extra ? NULL : diag);
		if (err && err != -ENODATA && !(is_extra && err == -EBADMSG))
			return err;
		ret_stats->nr_unsupported += stats.nr_unsupported;
		ret_stats->nr_bad_fdes += stats.nr_bad_fdes;
	}
	return spans->nr_spans ? 0 : diag_errno(diag, ENODATA, "no call frame information");
}

static int build_rows(struct spans *spans, struct unwind_table *table)
{
	struct builder builder = { .table = table };
	struct sonde_row *rows;
	uint64_t end_vaddr;
	int err;

	spans_range(spans, &table->base_vaddr, &end_vaddr);
	table->rows = malloc(spans_max_rows(spans) * sizeof(*table->rows));
	if (!table->rows)
		return -ENOMEM;
	err = spans_each(spans, add_rows, &builder);
	if (err)
		return err;
	table->buckets[table->nr_buckets] = (struct sonde_bucket){
		.start_rel = (uint32_t)(end_vaddr - table->base_vaddr),
		.rows_pos = table->nr_rows,
	};
	rows = realloc(table->rows, table->nr_rows * sizeof(*rows)); /* gives back what equal neighbours and gaps did not need */
	if (rows)
		table->rows = rows;
	return 0;
}

int unwind_table_build(const struct elf_file *elf, struct rule_table *rules, struct diag *diag, struct unwind_table **ret_table)
{
	CLEANUP(spans_done) struct spans spans = { .rules = rules };
	CLEANUP(unwind_table_freep) struct unwind_table *table = NULL;
	struct cfi_stats stats = { 0 };
	int err;

	if (elf_file_machine(elf) != EM_X86_64)
		return diag_errno(diag, ENODATA, "not an x86-64 file");
	err = collect(elf, &spans, &stats, diag);
	if (err)
		return err;
	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	err = build_rows(&spans, table);
	if (err)
		return diag_errno(diag, -err, "unwind table cannot be built");
	table->nr_unsupported = stats.nr_unsupported;
	table->nr_bad_fdes = stats.nr_bad_fdes;
	*ret_table = MOVE(table);
	return 0;
}

uint16_t unwind_table_find(const struct unwind_table *table, uint64_t elf_vaddr)
{
	uint64_t rel = elf_vaddr - table->base_vaddr;
	uint32_t lo = 0, hi = table->nr_buckets;
	const struct sonde_bucket *bucket;
	const struct sonde_row *rows;

	if (elf_vaddr < table->base_vaddr || rel >= table->buckets[table->nr_buckets].start_rel)
		return SONDE_RULE_NONE;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (table->buckets[mid].start_rel <= rel)
			lo = mid;
		else
			hi = mid;
	}
	bucket = &table->buckets[lo];
	rows = table->rows + bucket->rows_pos;
	rel -= bucket->start_rel; /* may pass MAX_LOW in the bucket's last row */
	lo = 0;
	hi = bucket->nr_rows;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (rows[mid].low <= rel)
			lo = mid;
		else
			hi = mid;
	}
	return rows[lo].rule;
}
