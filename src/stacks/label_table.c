// SPDX-License-Identifier: Apache-2.0
#include "stacks/label_table.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/u64_map.h"
#include "base/utf8.h"

#define SETS_BYTES_MAX ((size_t)1 << 30)
#define ELLIPSIS "\xe2\x80\xa6"
/* Any byte may be invalid UTF-8. Each such byte becomes U+FFFD, which takes three bytes. */
#define TEXT_BYTES_MAX (3 * SONDE_LABEL_TEXT_BYTES + sizeof(ELLIPSIS))

struct label_set {
	uint32_t first, nr; /* in `labels` */
	uint32_t nr_left;
	struct stack_owner owner;
};

struct label_table {
	struct buffer labels; /* struct sonde_label each */
	struct buffer sets;   /* struct label_set each */
	struct u64_map set_by_hash;
};

struct label_table *label_table_new(void)
{
	struct label_table *table = calloc(1, sizeof(*table));

	if (table)
		table->labels = table->sets = BUFFER_INIT(SETS_BYTES_MAX);
	return table;
}

void label_table_free(struct label_table *table)
{
	if (!table)
		return;
	buffer_done(&table->labels);
	buffer_done(&table->sets);
	u64_map_done(&table->set_by_hash);
	free(table);
}

/* Orders bytewise by key; keys that were cut to the same bytes are ordered by their texts. */
static int by_key(const void *a, const void *b)
{
	const struct sonde_label *label_a = a, *label_b = b;
	int order = memcmp(label_a->key, label_b->key, sizeof(label_a->key));

	return order ? order : memcmp(label_a->text, label_b->text, sizeof(label_a->text));
}

size_t label_table_bytes(const struct label_table *table)
{
	return table->labels.size + table->sets.size;
}

/* The set's labels go to the end of table->labels. */
static int append_set(struct label_table *table, uint64_t hash, const struct label_set *set, const struct sonde_label *labels)
{
	buffer_append(&table->labels, labels, set->nr * sizeof(*labels));
	buffer_append(&table->sets, set, sizeof(*set));
	if (table->labels.err || table->sets.err)
		return -ENOMEM;
	return u64_map_add(&table->set_by_hash, hash, (uint32_t)(table->sets.size / sizeof(*set)) - 1);
}

int label_table_record(struct label_table *table, const struct sonde_labels_record *record, const struct stack_walker *walker)
{
	struct label_set set = { .first = (uint32_t)(table->labels.size / sizeof(struct sonde_label)),
				 .nr = record->nr_labels,
				 .nr_left = record->nr_left };
	const uint32_t *known = u64_map_find(&table->set_by_hash, record->hash);
	struct sonde_label labels[SONDE_MAX_LABELS];

	if (record->fault)
		walker->touch(walker->arg, record->tgid, record->fault);
	if (set.nr > SONDE_MAX_LABELS)
		return -EBADMSG;
	memcpy(labels, record + 1, set.nr * sizeof(*labels));
	qsort(labels, set.nr, sizeof(*labels), by_key);
	set.owner = (struct stack_owner){ .tgid = record->tgid,
					  .generation = record->generation,
					  .check = hash_bytes(labels, set.nr * sizeof(*labels), set.nr_left) };
	if (known) { /* sent again: must be the same */
		stack_owner_again(&((struct label_set *)table->sets.data + *known)->owner, &set.owner);
		return 0;
	}
	return append_set(table, record->hash, &set, labels);
}

int label_table_copy(struct label_table *table, const struct label_table *from, uint64_t hash)
{
	struct label_set set = *((const struct label_set *)from->sets.data + *u64_map_find(&from->set_by_hash, hash));
	const struct sonde_label *labels = (const struct sonde_label *)from->labels.data + set.first;

	set.first = (uint32_t)(table->labels.size / sizeof(struct sonde_label));
	return append_set(table, hash, &set, labels);
}

const struct stack_owner *label_table_owner(const struct label_table *table, uint64_t hash)
{
	const uint32_t *number = u64_map_find(&table->set_by_hash, hash);

	return number ? &((const struct label_set *)table->sets.data + *number)->owner : NULL;
}

/* The string for the profile. Characters that are not plain text are replaced; a text that was cut ends in "…". */
static uint32_t string_of(struct profile *profile, const char *bytes, uint32_t nr_bytes, uint32_t max_bytes)
{
	bool is_cut = nr_bytes > max_bytes;
	const char *end = bytes + (is_cut ? max_bytes : nr_bytes);
	char text[TEXT_BYTES_MAX], *to = text;

	while (bytes < end) {
		uint32_t code = utf8_next(&bytes, end);

		if (is_cut && code == UTF8_REPLACEMENT && bytes == end) /* cut within a character */
			break;
		to += utf8_encode(utf8_is_plain(code) ? code : UTF8_REPLACEMENT, to);
	}
	if (is_cut)
		to = (char *)memcpy(to, ELLIPSIS, strlen(ELLIPSIS)) + strlen(ELLIPSIS);
	*to = '\0';
	return profile_string(profile, text);
}

static int add_left(struct profile *profile, uint32_t nr_left, struct profile_label *label)
{
	label->key = profile_string(profile, LABEL_TABLE_LEFT_KEY);
	label->text = label->unit = PROFILE_EMPTY_STRING;
	label->number = nr_left;
	label->is_number = 1;
	return label->key == PROFILE_NONE ? -ENOMEM : 0;
}

uint32_t label_table_labels(const struct label_table *table, uint64_t hash, struct profile *profile)
{
	const uint32_t *number = u64_map_find(&table->set_by_hash, hash);
	struct profile_label labels[SONDE_MAX_LABELS + 1] = { 0 };
	const struct sonde_label *from;
	const struct label_set *set;
	uint32_t nr;

	if (!number)
		return PROFILE_NO_LABELS;
	set = (const struct label_set *)table->sets.data + *number;
	from = (const struct sonde_label *)table->labels.data + set->first;
	for (nr = 0; nr < set->nr; nr++) {
		labels[nr].key = string_of(profile, from[nr].key, from[nr].key_bytes, SONDE_LABEL_KEY_BYTES);
		labels[nr].text = string_of(profile, from[nr].text, from[nr].text_bytes, SONDE_LABEL_TEXT_BYTES);
		labels[nr].unit = PROFILE_EMPTY_STRING;
		if (labels[nr].key == PROFILE_NONE || labels[nr].text == PROFILE_NONE)
			return PROFILE_NONE;
	}
	if (set->nr_left && add_left(profile, set->nr_left, &labels[nr++]))
		return PROFILE_NONE;
	return profile_labels(profile, labels, nr);
}
