// SPDX-License-Identifier: Apache-2.0
#include "stacks/label_table.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hex.h"
#include "base/reader.h"
#include "base/u64_map.h"
#include "base/utf8.h"
#include "model/span_label.h"

#define MAX_UNNAMED 64 /* of others the attributes stay left out */
#define ELLIPSIS "\xe2\x80\xa6"
/* Any byte may be invalid UTF-8. Each such byte becomes U+FFFD, which takes three bytes. */
#define TEXT_BYTES_MAX (3 * SONDE_LABEL_TEXT_BYTES + sizeof(ELLIPSIS))

struct label_set {
	uint32_t first, nr; /* in `labels` */
	uint32_t nr_left;
	struct stack_owner owner;
};

/* A set with an attribute whose name is not known yet: a thread may use one before its process has published the name. */
struct unnamed {
	struct sonde_labels_record *record; /* owned */
	uint32_t set;
	uint32_t wait, left; /* passes between two attempts, twice as many each time, and until the next */
};

struct label_table {
	struct unnamed unnamed[MAX_UNNAMED];
	uint32_t nr_unnamed;
	size_t max_bytes;
	struct buffer labels; /* struct sonde_label each */
	struct buffer sets;   /* struct label_set each */
	struct u64_map set_by_hash;
};

struct label_table *label_table_new(size_t max_bytes)
{
	struct label_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->max_bytes = max_bytes;
	table->labels = table->sets = BUFFER_INIT(max_bytes);
	return table;
}

void label_table_free(struct label_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->nr_unnamed; i++)
		free(table->unnamed[i].record);
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

/* --- the context of a thread ---------------------------------------------------------------------------------------------------------- */

struct draft {
	struct sonde_label labels[LABEL_TABLE_MAX];
	uint32_t nr, nr_left;
};

static void add_id(struct draft *draft, const char *key, const uint8_t *bytes, size_t size)
{
	struct sonde_label *label = &draft->labels[draft->nr++];

	label->key_bytes = (uint32_t)strlen(key);
	label->text_bytes = (uint32_t)(2 * size);
	memcpy(label->key, key, strlen(key));
	hex_write(bytes, size, label->text);
}

/* The ids have a meaning only together. */
static void add_ids(struct draft *draft, const struct sonde_thread_context *context)
{
	static const uint8_t none[sizeof(context->trace_id)];

	if (!memcmp(context->trace_id, none, sizeof(context->trace_id)) || !memcmp(context->span_id, none, sizeof(context->span_id)))
		return;
	add_id(draft, SPAN_LABEL_TRACE, context->trace_id, sizeof(context->trace_id));
	add_id(draft, SPAN_LABEL_SPAN, context->span_id, sizeof(context->span_id));
}

/* Which would hide the thread's own. */
static bool is_id(const struct sonde_label *label)
{
	static const char *const keys[] = { SPAN_LABEL_TRACE, SPAN_LABEL_SPAN };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (label->key_bytes == strlen(keys[i]) && !memcmp(label->key, keys[i], label->key_bytes))
			return true;
	}
	return false;
}

static void add_attribute(struct draft *draft, const struct sonde_labels_record *record, uint8_t number, struct reader text,
			  const struct stack_walker *walker)
{
	struct sonde_label label = { .text_bytes = (uint32_t)reader_left(&text) };

	if (walker->context_key && draft->nr < LABEL_TABLE_MAX)
		label.key_bytes = walker->context_key(walker->arg, record->tgid, record->generation, number, label.key);
	if (!label.key_bytes || is_id(&label)) {
		draft->nr_left++;
		return;
	}
	memcpy(label.text, text.pos, label.text_bytes < sizeof(label.text) ? label.text_bytes : sizeof(label.text));
	draft->labels[draft->nr++] = label;
}

/* Of two with the same number the last one counts. What does not hold a whole one at the end is ignored: the specification has it so. */
static void add_attributes(struct draft *draft, const struct sonde_labels_record *record, struct reader attributes,
			   const struct stack_walker *walker)
{
	struct reader texts[UINT8_MAX + 1] = { 0 };

	while (reader_left(&attributes) >= 2) {
		uint8_t number = reader_u8(&attributes), size = reader_u8(&attributes);

		if (reader_left(&attributes) < size)
			break;
		texts[number] = reader_sub(&attributes, size);
	}
	for (uint32_t number = 0; number <= UINT8_MAX; number++) {
		if (texts[number].pos && reader_left(&texts[number]))
			add_attribute(draft, record, (uint8_t)number, texts[number], walker);
	}
}

static const char *context_of(const struct sonde_labels_record *record)
{
	return (const char *)(record + 1) + record->nr_labels * sizeof(struct sonde_label);
}

static void add_context(struct draft *draft, const struct sonde_labels_record *record, const struct stack_walker *walker)
{
	const char *bytes = context_of(record);
	struct sonde_thread_context context;

	if (record->context_bytes < sizeof(context))
		return;
	memcpy(&context, bytes, sizeof(context));
	add_ids(draft, &context);
	if (context.attributes_bytes > record->context_bytes - sizeof(context))
		draft->nr_left++; /* how many there are is not known */
	else
		add_attributes(draft, record, reader_of(bytes + sizeof(context), context.attributes_bytes), walker);
}

/* --- sets ----------------------------------------------------------------------------------------------------------------------------- */

static bool has_room(const struct label_table *table, uint32_t nr_labels)
{
	return label_table_bytes(table) + nr_labels * sizeof(struct sonde_label) + sizeof(struct label_set) <= table->max_bytes;
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

/* Makes labels of a record, sorted. With `ret_check` also a hash of its bytes: without the names, which may be known later. */
static void make_draft(const struct sonde_labels_record *record, const struct stack_walker *walker, struct draft *draft,
		       uint64_t *ret_check)
{
	*draft = (struct draft){ .nr = record->nr_labels, .nr_left = record->nr_left };
	memcpy(draft->labels, record + 1, draft->nr * sizeof(*draft->labels));
	qsort(draft->labels, draft->nr, sizeof(*draft->labels), by_key);
	*ret_check = hash_bytes(draft->labels, draft->nr * sizeof(*draft->labels), draft->nr_left);
	*ret_check = hash_bytes(context_of(record), record->context_bytes, *ret_check);
	add_context(draft, record, walker);
	qsort(draft->labels, draft->nr, sizeof(*draft->labels), by_key);
}

static int keep_unnamed(struct label_table *table, const struct sonde_labels_record *record)
{
	size_t size = (size_t)(context_of(record) - (const char *)record) + record->context_bytes;
	struct unnamed *unnamed = &table->unnamed[table->nr_unnamed];

	if (table->nr_unnamed == MAX_UNNAMED)
		return 0;
	*unnamed = (struct unnamed){
		.record = malloc(size), .set = (uint32_t)(table->sets.size / sizeof(struct label_set)) - 1, .wait = 1
	};
	if (!unnamed->record)
		return -ENOMEM;
	memcpy(unnamed->record, record, size);
	table->nr_unnamed++;
	return 0;
}

int label_table_record(struct label_table *table, const struct sonde_labels_record *record, const struct stack_walker *walker)
{
	const uint32_t *known = u64_map_find(&table->set_by_hash, record->hash);
	struct label_set set;
	struct draft draft;
	uint64_t check;
	int err;

	if (record->fault)
		walker->touch(walker->arg, record->tgid, record->fault);
	if (record->nr_labels > SONDE_MAX_LABELS)
		return -EBADMSG;
	make_draft(record, walker, &draft, &check);
	set = (struct label_set){ .first = (uint32_t)(table->labels.size / sizeof(struct sonde_label)),
				  .nr = draft.nr,
				  .nr_left = draft.nr_left,
				  .owner = { .tgid = record->tgid, .generation = record->generation, .check = check } };
	if (known) { /* sent again: must be the same */
		stack_owner_again(&((struct label_set *)table->sets.data + *known)->owner, &set.owner);
		return 0;
	}
	if (!has_room(table, draft.nr))
		return 0;
	err = append_set(table, record->hash, &set, draft.labels);
	return err || draft.nr_left == record->nr_left ? err : keep_unnamed(table, record);
}

static int ask_again(struct label_table *table, struct unnamed *unnamed, const struct stack_walker *walker)
{
	struct label_set *set = (struct label_set *)table->sets.data + unnamed->set;
	struct draft draft;
	uint64_t check;

	if (unnamed->left) {
		unnamed->left--;
		return 0;
	}
	unnamed->wait *= unnamed->wait < UINT32_MAX / 2 ? 2 : 1;
	unnamed->left = unnamed->wait;
	make_draft(unnamed->record, walker, &draft, &check);
	if (draft.nr_left >= set->nr_left || !has_room(table, draft.nr))
		return 0;
	set->first = (uint32_t)(table->labels.size / sizeof(struct sonde_label));
	set->nr = draft.nr;
	set->nr_left = draft.nr_left;
	buffer_append(&table->labels, draft.labels, draft.nr * sizeof(*draft.labels));
	return table->labels.err;
}

int label_table_ask_again(struct label_table *table, const struct stack_walker *walker)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < table->nr_unnamed; i++)
		err = ask_again(table, &table->unnamed[i], walker);
	return err;
}

int label_table_copy(struct label_table *table, const struct label_table *from, uint64_t hash)
{
	struct label_set set = *((const struct label_set *)from->sets.data + *u64_map_find(&from->set_by_hash, hash));
	const struct sonde_label *labels = (const struct sonde_label *)from->labels.data + set.first;

	if (!has_room(table, set.nr))
		return 0;
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
	struct profile_label labels[LABEL_TABLE_MAX + 1] = { 0 };
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
