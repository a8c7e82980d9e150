/* SPDX-License-Identifier: Apache-2.0 */
/* check_table: what must hold of every unwind table, whatever it was built from. */
#pragma once
#include <stdbool.h>
#include <stdlib.h>

#include "unwind/unwind_table.h"

static inline void check_that(bool holds)
{
	if (!holds)
		abort();
}

/* The look-up's halving against a plain scan, which is the meaning of the table. */
static inline uint16_t scan_table(const struct unwind_table *table, uint64_t elf_vaddr)
{
	uint64_t rel = elf_vaddr - table->base_vaddr;
	uint16_t rule = SONDE_RULE_NONE;

	if (elf_vaddr < table->base_vaddr || rel >= table->buckets[table->nr_buckets].start_rel)
		return SONDE_RULE_NONE;
	for (uint32_t i = 0; i < table->nr_buckets; i++) {
		const struct sonde_bucket *bucket = &table->buckets[i];

		for (uint32_t row = 0; row < bucket->nr_rows; row++) {
			if ((uint64_t)bucket->start_rel + table->rows[bucket->rows_pos + row].low <= rel)
				rule = table->rows[bucket->rows_pos + row].rule;
		}
	}
	return rule;
}

static inline void check_table(const struct unwind_table *table, const struct rule_table *rules)
{
	uint32_t nr_rules, nr_rows = 0;
	int64_t last_rel = -1;

	rule_table_rules(rules, &nr_rules);
	check_that(table->nr_buckets >= 1 && table->nr_buckets <= SONDE_MAX_BUCKETS);
	for (uint32_t i = 0; i < table->nr_buckets; i++) {
		const struct sonde_bucket *bucket = &table->buckets[i];

		check_that(bucket->rows_pos == nr_rows && bucket->nr_rows >= 1 && bucket->nr_rows <= SONDE_BUCKET_ROWS);
		check_that(table->rows[nr_rows].low == 0);
		for (uint32_t row = 0; row < bucket->nr_rows; row++, nr_rows++) {
			int64_t rel = (int64_t)bucket->start_rel + table->rows[nr_rows].low;
			uint64_t elf_vaddr = table->base_vaddr + (uint64_t)rel;

			check_that(rel > last_rel && table->rows[nr_rows].rule < nr_rules);
			last_rel = rel;
			if (nr_rows % 16 == 0) { /* the scan is slow */
				check_that(unwind_table_find(table, elf_vaddr) == scan_table(table, elf_vaddr));
				check_that(unwind_table_find(table, elf_vaddr - 1) == scan_table(table, elf_vaddr - 1));
			}
		}
	}
	check_that(nr_rows == table->nr_rows && table->buckets[table->nr_buckets].nr_rows == 0);
	check_that(table->buckets[table->nr_buckets].rows_pos == nr_rows && table->buckets[table->nr_buckets].start_rel > last_rel);
	check_that(unwind_table_find(table, table->base_vaddr + table->buckets[table->nr_buckets].start_rel) == SONDE_RULE_NONE);
	check_that(unwind_table_find(table, table->base_vaddr - 1) == SONDE_RULE_NONE);
}
