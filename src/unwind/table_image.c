// SPDX-License-Identifier: Apache-2.0
/* A header, the rules, the index and the rows, in this order. The image numbers its rules in its own order, after the fixed ones. */
#include "unwind/table_image.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"
#include "base/reader.h"

extern const uint64_t table_compiler; /* from tools/source_hash.py: changes with the sources that compile tables */

#define MAX_REGS 32 /* DWARF register numbers that a rule may use: x86-64 has 16, arm64 32 */
#define MAGIC 0x31454c4241544e53ULL /* "SNTABLE1" */

struct image_header {
	uint64_t magic;
	uint64_t compiler;       /* table_compiler */
	uint64_t checksum;       /* of the whole image, with this field as 0 */
	struct table_key key;
	uint64_t base_vaddr;
	uint32_t nr_rules, nr_blocks, nr_rows, block_shift;
	uint32_t nr_unsupported, nr_bad_fdes;
};
_Static_assert(sizeof(struct table_key) == 128, "there is padding that nobody zeroes");
_Static_assert(sizeof(struct image_header) % 8 == 0, "there is padding that nobody zeroes");

static uint64_t checksum(const void *bytes, size_t size)
{
	struct image_header header;

	memcpy(&header, bytes, sizeof(header));
	header.checksum = 0;
	return hash_stable((const char *)bytes + sizeof(header), size - sizeof(header), hash_stable(&header, sizeof(header), size));
}

/* Numbers the rules that occur in the rows, and appends the rules. */
static int append_rules(const struct unwind_table *table, const struct rule_table *rules, uint16_t *numbers, struct buffer *to,
			uint32_t *ret_nr)
{
	uint32_t nr_all, nr = 0;
	const struct sonde_rule *all = rule_table_rules(rules, &nr_all);

	for (uint32_t i = 0; i < table->nr_rows; i++) {
		uint16_t rule = table->rows[i].rule;

		if (rule < SONDE_RULE_FIRST_FREE || numbers[rule])
			continue;
		numbers[rule] = (uint16_t)(SONDE_RULE_FIRST_FREE + nr++);
		buffer_append(to, &all[rule], sizeof(all[rule]));
	}
	*ret_nr = nr;
	return to->err;
}

int table_image_make(const struct unwind_table *table, const struct rule_table *rules, const struct table_key *key, struct buffer *to)
{
	CLEANUP(freep) uint16_t *numbers = calloc(SONDE_MAX_RULES, sizeof(*numbers));
	struct image_header header = {
		.magic = MAGIC,
		.compiler = table_compiler,
		.key = *key,
		.base_vaddr = table->base_vaddr,
		.nr_blocks = table->nr_blocks,
		.nr_rows = table->nr_rows,
		.block_shift = table->block_shift,
		.nr_unsupported = table->nr_unsupported,
		.nr_bad_fdes = table->nr_bad_fdes,
	};
	size_t start = to->size;
	struct sonde_row *rows;

	if (!numbers)
		return -ENOMEM;
	buffer_append(to, &header, sizeof(header));
	if (append_rules(table, rules, numbers, to, &header.nr_rules))
		return to->err;
	buffer_append(to, table->blocks, (table->nr_blocks + 1) * sizeof(*table->blocks));
	rows = buffer_reserve(to, table->nr_rows * sizeof(*rows));
	if (to->err)
		return to->err;
	for (uint32_t i = 0; i < table->nr_rows; i++) {
		rows[i] = table->rows[i];
		if (rows[i].rule >= SONDE_RULE_FIRST_FREE)
			rows[i].rule = numbers[rows[i].rule];
	}
	memcpy(to->data + start, &header, sizeof(header));
	header.checksum = checksum(to->data + start, to->size - start);
	memcpy(to->data + start, &header, sizeof(header));
	return 0;
}

/* Could the table compiler have written it? Checks enums and register numbers, which the walks rely on. Stack offsets may have any
 * value. */
static bool is_rule_sound(const struct sonde_rule *rule)
{
	static const uint8_t none[sizeof(rule->pad)];

	if (rule->bp_kind > SONDE_BP_UNDEFINED || rule->ra_kind > SONDE_RA_REG || rule->is_signal > 1 ||
	    memcmp(rule->pad, none, sizeof(none)))
		return false;
	if (rule->kind == SONDE_RULE_KIND_SWITCH)
		return rule->cfa_kind <= SONDE_SWITCH_SCHEDULER;
	if (rule->kind != SONDE_RULE_KIND_STEP || rule->cfa_kind > SONDE_CFA_DEREF_TWICE ||
	    (rule->cfa_kind == SONDE_CFA_REG && rule->cfa_reg >= MAX_REGS))
		return false;
	return rule->ra_kind != SONDE_RA_REG || (rule->ra_off >= 0 && rule->ra_off < MAX_REGS);
}

/* Is it an image of this build for this file, complete and of the stated size? */
static bool read_header(const void *bytes, size_t size, const struct table_key *key, struct image_header *header)
{
	struct reader reader = reader_of(bytes, size);

	reader_copy(&reader, header, sizeof(*header));
	if (reader.bad || header->magic != MAGIC || header->compiler != table_compiler || memcmp(&header->key, key, sizeof(*key)))
		return false;
	if (header->nr_blocks - 1 >= SONDE_MAX_BLOCKS || !header->nr_rows || header->nr_rules > SONDE_MAX_RULES - SONDE_RULE_FIRST_FREE ||
	    header->block_shift < SONDE_MIN_BLOCK_SHIFT || header->block_shift > SONDE_MAX_BLOCK_SHIFT)
		return false;
	if (size != sizeof(*header) + header->nr_rules * sizeof(struct sonde_rule) + (header->nr_blocks + 1) * sizeof(uint32_t) +
			    (uint64_t)header->nr_rows * sizeof(struct sonde_row))
		return false;
	return header->checksum == checksum(bytes, size);
}

/* What the kernel side relies on: the index is valid, rows are sorted within their block, the first row is at the table's start, and the
 * last one ends the table. */
static bool is_sound(const struct unwind_table *table, uint32_t nr_rules)
{
	uint32_t end = 1u << table->block_shift;

	if (table->blocks[0] || table->blocks[table->nr_blocks] != table->nr_rows || table->rows[0].low ||
	    table->rows[table->nr_rows - 1].rule != SONDE_RULE_NONE)
		return false;
	for (uint32_t block = 0; block < table->nr_blocks; block++) {
		uint32_t next = 0;

		if (table->blocks[block] > table->blocks[block + 1] || table->blocks[block + 1] > table->nr_rows)
			return false;
		for (uint32_t row = table->blocks[block]; row < table->blocks[block + 1]; row++) {
			if (table->rows[row].low < next || table->rows[row].low >= end ||
			    table->rows[row].rule >= SONDE_RULE_FIRST_FREE + nr_rules)
				return false;
			next = table->rows[row].low + 1u;
		}
	}
	return true;
}

static void number_rows(struct unwind_table *table, struct rule_table *rules, const uint16_t *numbers)
{
	for (uint32_t i = 0; i < table->nr_rows; i++)
		table->rows[i].rule = numbers[table->rows[i].rule];
	rule_table_hold(rules, table->rows, table->nr_rows);
	table->rules = rules;
}

/* Numbers the image's rules. Those above the limit per file become UNSUPPORTED. 0 or -EBADMSG. */
static int number_rules(struct reader *reader, uint32_t nr_rules, struct rule_table *rules, uint32_t uid, uint16_t *numbers)
{
	for (uint32_t i = 0; i < SONDE_RULE_FIRST_FREE; i++)
		numbers[i] = (uint16_t)i;
	for (uint32_t i = 0; i < nr_rules; i++) {
		struct sonde_rule rule;

		reader_copy(reader, &rule, sizeof(rule));
		if (!is_rule_sound(&rule))
			return -EBADMSG;
		numbers[SONDE_RULE_FIRST_FREE + i] =
		    i < RULE_TABLE_MAX_OF_FILE ? rule_table_number(rules, &rule, uid) : SONDE_RULE_UNSUPPORTED;
	}
	return 0;
}

/* Assumes that none of its rules exist yet. If this refuses an image, hundreds or thousands of rules have no room. */
static bool has_room(const struct rule_table *rules, uint32_t nr_rules, uint32_t uid)
{
	struct rule_room room = rule_table_room(rules, uid);
	uint32_t nr = nr_rules < RULE_TABLE_MAX_OF_FILE ? nr_rules : RULE_TABLE_MAX_OF_FILE;

	return nr <= room.of_user && nr <= room.of_table;
}

int table_image_read(const void *bytes, size_t size, const struct table_key *key, struct rule_table *rules, uint32_t uid,
		     struct unwind_table **ret_table)
{
	CLEANUP(unwind_table_freep) struct unwind_table *table = calloc(1, sizeof(*table));
	CLEANUP(freep) uint16_t *numbers = calloc(SONDE_MAX_RULES, sizeof(*numbers));
	struct reader reader = reader_of(bytes, size);
	struct image_header header;

	if (!table || !numbers)
		return -ENOMEM;
	if (!read_header(bytes, size, key, &header))
		return -EBADMSG;
	if (!has_room(rules, header.nr_rules, uid))
		return -EXFULL;
	*table = (struct unwind_table){ .base_vaddr = header.base_vaddr,
					.nr_rows = header.nr_rows,
					.nr_blocks = header.nr_blocks,
					.block_shift = header.block_shift,
					.nr_unsupported = header.nr_unsupported,
					.nr_bad_fdes = header.nr_bad_fdes,
					.nr_rules = header.nr_rules };
	table->blocks = calloc(table->nr_blocks + 1, sizeof(*table->blocks));
	table->rows = malloc(table->nr_rows * sizeof(*table->rows));
	if (!table->blocks || !table->rows)
		return -ENOMEM;
	reader_skip(&reader, sizeof(header));
	if (number_rules(&reader, header.nr_rules, rules, uid, numbers))
		return -EBADMSG;
	reader_copy(&reader, table->blocks, (table->nr_blocks + 1) * sizeof(*table->blocks));
	reader_copy(&reader, table->rows, table->nr_rows * sizeof(*table->rows));
	if (reader.bad || !is_sound(table, header.nr_rules))
		return -EBADMSG;
	number_rows(table, rules, numbers);
	*ret_table = MOVE(table);
	return 0;
}
