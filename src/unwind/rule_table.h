/* SPDX-License-Identifier: Apache-2.0 */
/* rule_table: all unwind rules of all files, each once, numbered for the rows: the source of the BPF map `rules`. The first
 * SONDE_RULE_FIRST_FREE are fixed. Others are reference-counted, and owned by the owner of the file that brought them first. A number is
 * reused for another rule only after rule_table_settle: until then the kernel may be reading a row with it. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/unwind.h"
#include "base/cleanup.h"

#define RULE_TABLE_MAX_OF_FILE 4096 /* compilers' output needs at most 1,257 (docs/internals/unwind-tables.md) */

struct rule_table;
struct rule_table *rule_table_new(uint32_t max_rules); /* NULL: no memory */
void rule_table_free(struct rule_table *table); /* takes NULL */
static inline void rule_table_freep(struct rule_table **table)
{
	rule_table_free(*table);
}
/* Returns the rule's number, the same for equal rules; `uid` becomes the owner of a new one. The number is valid until the next
 * rule_table_settle, and after that as long as it is held. SONDE_RULE_UNSUPPORTED (counted) if the table is full. */
uint16_t rule_table_number(struct rule_table *table, const struct sonde_rule *rule, uint32_t uid);
/* Room for new rules. A user other than root has three eighths of the table, all of them together three quarters: the rest is for root's
 * files. Dropped rules count until rule_table_settle. */
struct rule_room {
	uint32_t of_user;  /* within his share */
	uint32_t of_table; /* within what other users leave */
};
struct rule_room rule_table_room(const struct rule_table *table, uint32_t uid);
/* Takes or drops one reference to each rule that occurs in the rows, however often it does. */
void rule_table_hold(struct rule_table *table, const struct sonde_row *rows, uint32_t nr_rows);
void rule_table_drop(struct rule_table *table, const struct sonde_row *rows, uint32_t nr_rows);
/* Frees the numbers of rules without a reference. To be called when the kernel cannot still be reading rows that were dropped before. */
void rule_table_settle(struct rule_table *table);
bool rule_table_has_idle(const struct rule_table *table); /* are there such rules? */
const struct sonde_rule *rule_table_rules(const struct rule_table *table, uint32_t *ret_nr); /* borrowed until the next number() */
/* The range of numbers whose rules changed since the last call. */
void rule_table_changed(struct rule_table *table, uint32_t *ret_first, uint32_t *ret_nr);
uint32_t rule_table_nr_used(const struct rule_table *table); /* including the fixed ones */
uint32_t rule_table_nr_refused(const struct rule_table *table);
