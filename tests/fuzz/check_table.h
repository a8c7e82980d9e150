/* SPDX-License-Identifier: Apache-2.0 */
/* check_table: what must hold for every unwind table, whatever it was built from. */
#pragma once
#include <stdbool.h>
#include <stdlib.h>

#include "unwind/unwind_table.h"

static inline void check_that(bool holds)
{
	if (!holds)
		abort();
}

/* The address of a row, as in the index. */
static inline uint64_t row_vaddr(const struct unwind_table *table, uint32_t block, uint32_t row)
{
	return table->base_vaddr + ((uint64_t)block << table->block_shift) + table->rows[row].low;
}

/* A plain scan defines the meaning of the table. Look-ups by the index are compared with it. */
static inline uint16_t scan_table(const struct unwind_table *table, uint64_t elf_vaddr)
{
	uint16_t rule = SONDE_RULE_NONE;

	for (uint32_t block = 0; block < table->nr_blocks; block++) {
		for (uint32_t row = table->blocks[block]; row < table->blocks[block + 1]; row++) {
			if (row_vaddr(table, block, row) <= elf_vaddr)
				rule = table->rows[row].rule;
		}
	}
	return rule;
}

static inline void check_table(const struct unwind_table *table, const struct rule_table *rules)
{
	uint32_t nr_rules;
	uint64_t last_vaddr = 0;

	rule_table_rules(rules, &nr_rules);
	check_that(table->nr_blocks >= 1 && table->nr_blocks <= SONDE_MAX_BLOCKS);
	check_that(table->blocks[0] == 0 && table->blocks[table->nr_blocks] == table->nr_rows);
	check_that(table->rows[0].low == 0 && table->rows[table->nr_rows - 1].rule == SONDE_RULE_NONE);
	for (uint32_t block = 0; block < table->nr_blocks; block++) {
		check_that(table->blocks[block] <= table->blocks[block + 1]);
		for (uint32_t row = table->blocks[block]; row < table->blocks[block + 1]; row++) {
			uint64_t elf_vaddr = row_vaddr(table, block, row);

			check_that((!row || elf_vaddr > last_vaddr) && table->rows[row].rule < nr_rules);
			last_vaddr = elf_vaddr;
			if (row % 16 == 0 && table->nr_blocks < 4096) { /* the scan is slow */
				check_that(unwind_table_find(table, elf_vaddr) == scan_table(table, elf_vaddr));
				check_that(unwind_table_find(table, elf_vaddr - 1) == scan_table(table, elf_vaddr - 1));
			}
		}
	}
	check_that(unwind_table_find(table, table->base_vaddr - 1) == SONDE_RULE_NONE);
	check_that(unwind_table_find(table, last_vaddr) == SONDE_RULE_NONE);
}
