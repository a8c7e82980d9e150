/* SPDX-License-Identifier: Apache-2.0 */
/* rule_table: all unwind rules of all files, each once, numbered for the rows: the source of the BPF map `rules`. The first
 * SONDE_RULE_FIRST_FREE are fixed. One thread. */
#pragma once
#include <stdint.h>

#include "abi/unwind.h"
#include "base/cleanup.h"

struct rule_table;
struct rule_table *rule_table_new(uint32_t max_rules); /* NULL: no memory */
void rule_table_free(struct rule_table *table); /* takes NULL */
static inline void rule_table_freep(struct rule_table **table)
{
	rule_table_free(*table);
}
/* The rule's number, the same for equal rules. SONDE_RULE_UNSUPPORTED (and counted) when the table is full. */
uint16_t rule_table_number(struct rule_table *table, const struct sonde_rule *rule);
const struct sonde_rule *rule_table_rules(const struct rule_table *table, uint32_t *ret_nr); /* borrowed until the next number() */
uint32_t rule_table_nr_refused(const struct rule_table *table);
