// SPDX-License-Identifier: Apache-2.0
#include "events/key_names.h"

#include <string.h>

#define MAX_BYTES     ((uint64_t)64 << 20) /* of keys, and of texts */
#define MAX_KEY_BYTES 128

static struct interned new_keys(uint32_t key_bytes)
{
	return (struct interned){ .entry_bytes = key_bytes + 8, .key_bytes = key_bytes, .max = interned_max(MAX_BYTES, key_bytes + 8) };
}

struct key_names key_names_new(uint32_t key_bytes)
{
	return (struct key_names){ .keys = new_keys(key_bytes),
				   .older = new_keys(key_bytes),
				   .texts = TEXTS_INIT(MAX_BYTES),
				   .older_texts = TEXTS_INIT(MAX_BYTES) };
}

void key_names_done(struct key_names *names)
{
	interned_done(&names->keys);
	interned_done(&names->older);
	texts_done(&names->texts);
	texts_done(&names->older_texts);
}

void key_names_turn(struct key_names *names)
{
	interned_done(&names->older);
	texts_done(&names->older_texts);
	names->older = names->keys;
	names->older_texts = names->texts;
	names->keys = new_keys(names->older.key_bytes);
	names->texts = TEXTS_INIT(MAX_BYTES);
}

static uint32_t add(struct key_names *names, const void *key, const char *text)
{
	char entry[MAX_KEY_BYTES + 8] = { 0 };
	uint32_t number = texts_add(&names->texts, text);

	memcpy(entry, key, names->keys.key_bytes);
	memcpy(entry + names->keys.key_bytes, &number, sizeof(number));
	return number == TEXTS_NONE || interned_add(&names->keys, entry) == INTERNED_NONE ? TEXTS_NONE : number;
}

void key_names_add(struct key_names *names, const void *key, const char *text)
{
	add(names, key, text);
}

static uint32_t find(const struct interned *keys, const void *key)
{
	uint32_t at = interned_find(keys, key), number;

	if (at == INTERNED_NONE)
		return TEXTS_NONE;
	memcpy(&number, (const char *)interned_at(keys, at) + keys->key_bytes, sizeof(number));
	return number;
}

uint32_t key_names_find(struct key_names *names, const void *key)
{
	uint32_t number = find(&names->keys, key), older;

	if (number != TEXTS_NONE)
		return number;
	older = find(&names->older, key);
	return older == TEXTS_NONE ? TEXTS_NONE : add(names, key, texts_at(&names->older_texts, older));
}
