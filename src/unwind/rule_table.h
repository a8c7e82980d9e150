/* SPDX-License-Identifier: Apache-2.0 */
/* rule_table: all unwind rules of all files, each once, numbered for the rows: the source of the BPF map `rules`. The first
 * SONDE_RULE_FIRST_FREE are fixed. Others are kept as long as there is a reference to them, and belong to the owner of the file
 * that brought them first; their numbers are used again for other rules only after
 * rule_table_settle: until then the kernel may be reading a row that has them. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "base/cleanup.h"

#define RULE_TABLE_MAX_OF_FILE 4096 /* of one file; what compilers make needs 1,257 at most (docs/internals/unwind-tables.md) */

struct rule_table;
struct rule_table *rule_table_new(uint32_t max_rules); /* NULL: no memory */
void rule_table_free(struct rule_table *table); /* takes NULL */
static inline void rule_table_freep(struct rule_table **table)
{
	rule_table_free(*table);
}
/* The rule's number, the same for equal rules; a new one is `uid`'s. It stands until the next rule_table_settle and from then on as long as
 * it is held. SONDE_RULE_UNSUPPORTED (and counted) when the table is full. */
uint16_t rule_table_number(struct rule_table *table, const struct sonde_rule *rule, uint32_t uid);
/* How many new ones there is room for. A user other than root has three eighths of the table, and all of them three quarters: root's files
 * find the rest. What was dropped counts until it is settled. */
struct rule_room {
	uint32_t of_user;  /* by his share */
	uint32_t of_table; /* by what others leave him */
};
struct rule_room rule_table_room(const struct rule_table *table, uint32_t uid);
/* Takes or gives back one reference to each rule that stands in the rows, however often it does. */
void rule_table_hold(struct rule_table *table, const struct sonde_row *rows, uint32_t nr_rows);
void rule_table_drop(struct rule_table *table, const struct sonde_row *rows, uint32_t nr_rows);
/* Frees the numbers of the rules that nobody holds. To be called when the kernel cannot be reading rows any more that were dropped before.
 */
void rule_table_settle(struct rule_table *table);
bool rule_table_has_idle(const struct rule_table *table); /* are there such rules? */
const struct sonde_rule *rule_table_rules(const struct rule_table *table, uint32_t *ret_nr); /* borrowed until the next number() */
/* The range of numbers that stand for another rule than at the last call. */
void rule_table_changed(struct rule_table *table, uint32_t *ret_first, uint32_t *ret_nr);
uint32_t rule_table_nr_used(const struct rule_table *table); /* with the fixed ones */
uint32_t rule_table_nr_refused(const struct rule_table *table);
