// SPDX-License-Identifier: Apache-2.0
#include "stacks/label_book.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/u64_map.h"
#include "base/utf8.h"

#define SETS_BYTES_MAX ((size_t)1 << 30)
#define ELLIPSIS "\xe2\x80\xa6"
/* Each byte may be none of a character, and is replaced by the three of U+FFFD. */
#define TEXT_BYTES_MAX (3 * SONDE_LABEL_TEXT_BYTES + sizeof(ELLIPSIS))

struct label_set {
	uint32_t first, nr; /* in `labels` */
	uint32_t nr_left;
	struct stack_owner owner;
};

struct label_book {
	struct buffer labels; /* struct sonde_label each */
	struct buffer sets;   /* struct label_set each */
	struct u64_map set_by_hash;
};

struct label_book *label_book_new(void)
{
	struct label_book *book = calloc(1, sizeof(*book));

	if (book)
		book->labels = book->sets = BUFFER_INIT(SETS_BYTES_MAX);
	return book;
}

void label_book_free(struct label_book *book)
{
	if (!book)
		return;
	buffer_done(&book->labels);
	buffer_done(&book->sets);
	u64_map_done(&book->set_by_hash);
	free(book);
}

/* Bytewise, by keys; two that were cut to the same key by their texts. */
static int by_key(const void *a, const void *b)
{
	const struct sonde_label *label_a = a, *label_b = b;
	int order = memcmp(label_a->key, label_b->key, sizeof(label_a->key));

	return order ? order : memcmp(label_a->text, label_b->text, sizeof(label_a->text));
}

size_t label_book_bytes(const struct label_book *book)
{
	return book->labels.size + book->sets.size;
}

/* Its labels are to stand behind those that are there. */
static int append_set(struct label_book *book, uint64_t hash, const struct label_set *set, const struct sonde_label *labels)
{
	buffer_append(&book->labels, labels, set->nr * sizeof(*labels));
	buffer_append(&book->sets, set, sizeof(*set));
	if (book->labels.err || book->sets.err)
		return -ENOMEM;
	return u64_map_add(&book->set_by_hash, hash, (uint32_t)(book->sets.size / sizeof(*set)) - 1);
}

int label_book_record(struct label_book *book, const struct sonde_labels_record *record, const struct stack_walker *walker)
{
	struct label_set set = { .first = (uint32_t)(book->labels.size / sizeof(struct sonde_label)), .nr = record->nr_labels, .nr_left = record->nr_left };
	const uint32_t *known = u64_map_find(&book->set_by_hash, record->hash);
	struct sonde_label labels[SONDE_MAX_LABELS];

	if (record->fault)
		walker->touch(walker->arg, record->tgid, record->fault);
	if (set.nr > SONDE_MAX_LABELS)
		return -EBADMSG;
	memcpy(labels, record + 1, set.nr * sizeof(*labels));
	qsort(labels, set.nr, sizeof(*labels), by_key);
	set.owner = (struct stack_owner){ .tgid = record->tgid, .generation = record->generation, .check = hash_bytes(labels, set.nr * sizeof(*labels), set.nr_left) };
	if (known) { /* sent again: the same */
		stack_owner_again(&((struct label_set *)book->sets.data + *known)->owner, &set.owner);
		return 0;
	}
	return append_set(book, record->hash, &set, labels);
}

int label_book_copy(struct label_book *book, const struct label_book *from, uint64_t hash)
{
	struct label_set set = *((const struct label_set *)from->sets.data + *u64_map_find(&from->set_by_hash, hash));
	const struct sonde_label *labels = (const struct sonde_label *)from->labels.data + set.first;

	set.first = (uint32_t)(book->labels.size / sizeof(struct sonde_label));
	return append_set(book, hash, &set, labels);
}

const struct stack_owner *label_book_owner(const struct label_book *book, uint64_t hash)
{
	const uint32_t *number = u64_map_find(&book->set_by_hash, hash);

	return number ? &((const struct label_set *)book->sets.data + *number)->owner : NULL;
}

/* The string in the profile: what is no plain text is replaced, what was cut ends in "…". */
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
	label->key = profile_string(profile, LABEL_BOOK_LEFT_KEY);
	label->text = label->unit = PROFILE_EMPTY_STRING;
	label->number = nr_left;
	label->is_number = 1;
	return label->key == PROFILE_NONE ? -ENOMEM : 0;
}

uint32_t label_book_labels(const struct label_book *book, uint64_t hash, struct profile *profile)
{
	const uint32_t *number = u64_map_find(&book->set_by_hash, hash);
	struct profile_label labels[SONDE_MAX_LABELS + 1] = { 0 };
	const struct sonde_label *from;
	const struct label_set *set;
	uint32_t nr;

	if (!number)
		return PROFILE_NO_LABELS;
	set = (const struct label_set *)book->sets.data + *number;
	from = (const struct sonde_label *)book->labels.data + set->first;
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
