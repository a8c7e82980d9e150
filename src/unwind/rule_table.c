// SPDX-License-Identifier: Apache-2.0
/* Rules are in an array by number. A hash table of numbers, open addressing and at most half full, finds them by content. */
#include "unwind/rule_table.h"

#include <string.h>

#include "base/hash.h"
#include "base/u64_map.h"

#define RULE_WORDS (sizeof(struct sonde_rule) / sizeof(uint64_t))

struct rule_table {
	unsigned __int128 multipliers[RULE_WORDS]; /* random: untrusted files choose the rules */
	struct sonde_rule *rules;
	uint32_t *refs;                     /* by number */
	uint32_t *stamps;                   /* by number: the last call that counted it */
	uint32_t *owners;                   /* by number: uid */
	struct u64_map by_owner;            /* uid -> number of rules the user owns; not for root */
	uint32_t nr_of_users;               /* the sum of by_owner */
	uint16_t *free;                     /* unused numbers below nr_rules */
	uint16_t *loose;                    /* numbers without a reference when they were added; each once */
	bool *is_loose;                     /* by number */
	uint16_t *slots;                    /* rule numbers; 0: empty (the fixed rules are not in it) */
	uint32_t nr_rules, nr_free, nr_loose;
	uint32_t max_rules, slot_shift, slot_mask;
	uint32_t stamp;
	uint32_t changed_first, changed_end;
	uint32_t nr_refused;
};

static bool allocate(struct rule_table *table)
{
	size_t nr = table->max_rules;

	table->rules = calloc(nr, sizeof(*table->rules)); /* the kernel provides the pages on first use */
	table->refs = calloc(nr, sizeof(*table->refs));
	table->stamps = calloc(nr, sizeof(*table->stamps));
	table->owners = calloc(nr, sizeof(*table->owners));
	table->free = calloc(nr, sizeof(*table->free));
	table->loose = calloc(nr, sizeof(*table->loose));
	table->is_loose = calloc(nr, sizeof(*table->is_loose));
	table->slots = calloc((size_t)table->slot_mask + 1, sizeof(*table->slots));
	return table->rules && table->refs && table->stamps && table->owners && table->free && table->loose && table->is_loose &&
	       table->slots;
}

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
	for (uint32_t i = 0; i < RULE_WORDS; i++)
		table->multipliers[i] = (unsigned __int128)hash_number(2 * i) << 64 | hash_number(2 * i + 1);
	table->max_rules = max_rules;
	table->slot_shift = 64 - slot_bits;
	table->slot_mask = (1u << slot_bits) - 1;
	if (!allocate(table)) {
		rule_table_free(table);
		return NULL;
	}
	table->rules[SONDE_RULE_NONE].kind = SONDE_RULE_KIND_NONE;
	table->rules[SONDE_RULE_END].kind = SONDE_RULE_KIND_END;
	table->rules[SONDE_RULE_SIGNAL].kind = SONDE_RULE_KIND_SIGNAL;
	table->rules[SONDE_RULE_UNSUPPORTED].kind = SONDE_RULE_KIND_UNSUPPORTED;
	table->rules[SONDE_RULE_WIDE].kind = SONDE_RULE_KIND_WIDE;
	table->nr_rules = table->changed_end = SONDE_RULE_FIRST_FREE;
	return table;
}

void rule_table_free(struct rule_table *table)
{
	if (!table)
		return;
	free(table->rules);
	free(table->refs);
	free(table->stamps);
	free(table->owners);
	u64_map_done(&table->by_owner);
	free(table->free);
	free(table->loose);
	free(table->is_loose);
	free(table->slots);
	free(table);
}

/* The slot of the rule, or the empty slot where it belongs. Multiply-shift hashing, as in base/u64_map: called for each row of a file. */
static uint16_t *slot_of(const struct rule_table *table, const struct sonde_rule *rule)
{
	unsigned __int128 sum = 0;
	uint64_t words[RULE_WORDS];

	memcpy(words, rule, sizeof(words));
	for (size_t i = 0; i < RULE_WORDS; i++)
		sum += table->multipliers[i] * words[i];
	for (uint32_t i = (uint32_t)((uint64_t)(sum >> 64) >> table->slot_shift);; i = (i + 1) & table->slot_mask) {
		uint16_t number = table->slots[i];

		if (!number || !memcmp(&table->rules[number], rule, sizeof(*rule)))
			return &table->slots[i];
	}
}

static void enter_loose(struct rule_table *table, uint16_t number)
{
	if (!table->is_loose[number])
		table->loose[table->nr_loose++] = number;
	table->is_loose[number] = true;
}

static uint32_t nr_of(const struct rule_table *table, uint32_t uid)
{
	const uint32_t *nr = u64_map_find(&table->by_owner, uid);

	return nr ? *nr : 0;
}

/* Counts one more rule for the user. False: no memory. */
static bool take_one(struct rule_table *table, uint32_t uid)
{
	uint32_t *nr = u64_map_find(&table->by_owner, uid);

	if (uid && !nr && u64_map_add(&table->by_owner, uid, 1))
		return false;
	if (uid && nr)
		++*nr;
	table->nr_of_users += uid != 0;
	return true;
}

static void give_back_one(struct rule_table *table, uint32_t uid)
{
	uint32_t *nr = u64_map_find(&table->by_owner, uid);

	if (!uid)
		return;
	table->nr_of_users--;
	if (!--*nr)
		u64_map_remove(&table->by_owner, uid, 0);
}

static uint16_t add_rule(struct rule_table *table, uint16_t *slot, const struct sonde_rule *rule, uint32_t uid)
{
	uint16_t number;

	if ((!table->nr_free && table->nr_rules == table->max_rules) || !take_one(table, uid)) {
		table->nr_refused++;
		return SONDE_RULE_UNSUPPORTED;
	}
	number = table->nr_free ? table->free[--table->nr_free] : (uint16_t)table->nr_rules++;
	table->rules[number] = *rule;
	table->owners[number] = uid;
	enter_loose(table, number);
	if (table->changed_first == table->changed_end)
		table->changed_first = table->changed_end = number;
	if (number < table->changed_first)
		table->changed_first = number;
	if (number >= table->changed_end)
		table->changed_end = number + 1u;
	*slot = number;
	return number;
}

uint16_t rule_table_number(struct rule_table *table, const struct sonde_rule *rule, uint32_t uid)
{
	uint16_t *slot;

	switch (rule->kind) {
	case SONDE_RULE_KIND_STEP:
	case SONDE_RULE_KIND_SWITCH:
		break;
	case SONDE_RULE_KIND_NONE:
		return SONDE_RULE_NONE;
	case SONDE_RULE_KIND_WIDE:
		return SONDE_RULE_WIDE;
	case SONDE_RULE_KIND_END:
		return SONDE_RULE_END;
	case SONDE_RULE_KIND_SIGNAL:
		return SONDE_RULE_SIGNAL;
	default:
		return SONDE_RULE_UNSUPPORTED;
	}
	slot = slot_of(table, rule);
	return *slot ? *slot : add_rule(table, slot, rule, uid);
}

static uint32_t left_of(uint32_t max, uint32_t nr)
{
	return max > nr ? max - nr : 0;
}

struct rule_room rule_table_room(const struct rule_table *table, uint32_t uid)
{
	uint32_t of_all = table->max_rules - rule_table_nr_used(table), of_users = left_of(table->max_rules / 4 * 3, table->nr_of_users);

	if (!uid)
		return (struct rule_room){ .of_user = of_all, .of_table = of_all };
	return (struct rule_room){ .of_user = left_of(table->max_rules / 8 * 3, nr_of(table, uid)),
				   .of_table = of_users < of_all ? of_users : of_all };
}

/* Is this the first time that the rule occurs with this stamp? */
static bool is_first(struct rule_table *table, uint16_t number)
{
	if (table->stamps[number] == table->stamp)
		return false;
	table->stamps[number] = table->stamp;
	return true;
}

static void next_stamp(struct rule_table *table)
{
	if (!++table->stamp) {
		memset(table->stamps, 0, table->max_rules * sizeof(*table->stamps));
		table->stamp = 1;
	}
}

void rule_table_hold(struct rule_table *table, const struct sonde_row *rows, uint32_t nr_rows)
{
	next_stamp(table);
	for (uint32_t i = 0; i < nr_rows; i++) {
		if (is_first(table, rows[i].rule))
			table->refs[rows[i].rule]++;
	}
}

void rule_table_drop(struct rule_table *table, const struct sonde_row *rows, uint32_t nr_rows)
{
	next_stamp(table);
	for (uint32_t i = 0; i < nr_rows; i++) {
		if (is_first(table, rows[i].rule) && !--table->refs[rows[i].rule] && rows[i].rule >= SONDE_RULE_FIRST_FREE)
			enter_loose(table, rows[i].rule);
	}
}

/* Rebuilds the slots. Removed rules' slots cannot be emptied one by one: other rules were inserted behind them. */
static void fill_slots(struct rule_table *table)
{
	memset(table->slots, 0, (table->slot_mask + 1) * sizeof(*table->slots));
	for (uint32_t number = SONDE_RULE_FIRST_FREE; number < table->nr_rules; number++) {
		if (table->rules[number].kind != SONDE_RULE_KIND_NONE)
			*slot_of(table, &table->rules[number]) = (uint16_t)number;
	}
}

void rule_table_settle(struct rule_table *table)
{
	uint32_t nr_free = table->nr_free;

	for (uint32_t i = 0; i < table->nr_loose; i++) {
		uint16_t number = table->loose[i];

		table->is_loose[number] = false;
		if (table->refs[number])
			continue;
		give_back_one(table, table->owners[number]);
		table->rules[number].kind = SONDE_RULE_KIND_NONE;
		table->free[table->nr_free++] = number;
	}
	table->nr_loose = 0;
	if (table->nr_free != nr_free)
		fill_slots(table);
}

bool rule_table_has_idle(const struct rule_table *table)
{
	for (uint32_t i = 0; i < table->nr_loose; i++) {
		if (!table->refs[table->loose[i]])
			return true;
	}
	return false;
}

const struct sonde_rule *rule_table_rules(const struct rule_table *table, uint32_t *ret_nr)
{
	*ret_nr = table->nr_rules;
	return table->rules;
}

void rule_table_changed(struct rule_table *table, uint32_t *ret_first, uint32_t *ret_nr)
{
	*ret_first = table->changed_first;
	*ret_nr = table->changed_end - table->changed_first;
	table->changed_first = table->changed_end = 0;
}

uint32_t rule_table_nr_used(const struct rule_table *table)
{
	return table->nr_rules - table->nr_free;
}

uint32_t rule_table_nr_refused(const struct rule_table *table)
{
	return table->nr_refused;
}
