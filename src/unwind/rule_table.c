// SPDX-License-Identifier: Apache-2.0
/* Rules stand in an array by number; a table of numbers, open addressing and at most half full, finds them by content. */
#include "unwind/rule_table.h"

#include <string.h>

struct rule_table {
	struct sonde_rule *rules;
	uint16_t *slots; /* rule numbers; 0: empty (the fixed rules are not in it) */
	uint32_t nr_rules, max_rules, slot_shift, slot_mask;
	uint32_t nr_refused;
};

struct rule_table *rule_table_new(uint32_t max_rules)
{
	struct rule_table *table = calloc(1, sizeof(*table));
	uint32_t slot_bits = 3;

	if (!table)
		return NULL;
	if (max_rules > SONDE_MAX_RULES)
		max_rules = SONDE_MAX_RULES;
	if (max_rules < SONDE_RULE_FIRST_FREE)
		max_rules = SONDE_RULE_FIRST_FREE;
	while ((1u << slot_bits) < max_rules * 2)
		slot_bits++;
	table->max_rules = max_rules;
	table->slot_shift = 64 - slot_bits;
	table->slot_mask = (1u << slot_bits) - 1;
	table->rules = calloc(max_rules, sizeof(*table->rules)); /* pages are taken as they are used */
	table->slots = calloc((size_t)1 << slot_bits, sizeof(*table->slots));
	if (!table->rules || !table->slots) {
		rule_table_free(table);
		return NULL;
	}
	table->rules[SONDE_RULE_NONE].kind = SONDE_RULE_KIND_NONE;
	table->rules[SONDE_RULE_END].kind = SONDE_RULE_KIND_END;
	table->rules[SONDE_RULE_SIGNAL].kind = SONDE_RULE_KIND_SIGNAL;
	table->rules[SONDE_RULE_UNSUPPORTED].kind = SONDE_RULE_KIND_UNSUPPORTED;
	table->nr_rules = SONDE_RULE_FIRST_FREE;
	return table;
}

void rule_table_free(struct rule_table *table)
{
	if (!table)
		return;
	free(table->rules);
	free(table->slots);
	free(table);
}

static uint16_t add_rule(struct rule_table *table, uint16_t *slot, const struct sonde_rule *rule)
{
	if (table->nr_rules == table->max_rules) {
		table->nr_refused++;
		return SONDE_RULE_UNSUPPORTED;
	}
	table->rules[table->nr_rules] = *rule;
	*slot = (uint16_t)table->nr_rules++;
	return *slot;
}

uint16_t rule_table_number(struct rule_table *table, const struct sonde_rule *rule)
{
	uint64_t words[3], hash;

	switch (rule->kind) {
	case SONDE_RULE_KIND_STEP:
		break;
	case SONDE_RULE_KIND_NONE:
		return SONDE_RULE_NONE;
	case SONDE_RULE_KIND_END:
		return SONDE_RULE_END;
	case SONDE_RULE_KIND_SIGNAL:
		return SONDE_RULE_SIGNAL;
	default:
		return SONDE_RULE_UNSUPPORTED;
	}
	memcpy(words, rule, sizeof(words));
	hash = (words[0] ^ (words[1] << 29 | words[1] >> 35) ^ (words[2] << 47 | words[2] >> 17)) * 0x9e3779b97f4a7c15ULL;
	for (uint32_t i = (uint32_t)(hash >> table->slot_shift);; i = (i + 1) & table->slot_mask) {
		uint16_t number = table->slots[i];

		if (!number)
			return add_rule(table, &table->slots[i], rule);
		if (!memcmp(&table->rules[number], rule, sizeof(*rule)))
			return number;
	}
}

const struct sonde_rule *rule_table_rules(const struct rule_table *table, uint32_t *ret_nr)
{
	*ret_nr = table->nr_rules;
	return table->rules;
}

uint32_t rule_table_nr_refused(const struct rule_table *table)
{
	return table->nr_refused;
}
