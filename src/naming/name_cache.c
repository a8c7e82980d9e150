// SPDX-License-Identifier: Apache-2.0
#include "naming/name_cache.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/interned.h"
#include "base/texts.h"

#define NAMES_MAX 64 /* per address */

struct cached_name {
	uint64_t start;
	uint32_t name, system_name, file; /* numbers in `texts` */
	uint32_t line, start_line;
};

struct cached {
	struct name_cache_key key;
	uint32_t first, nr; /* range in `names` */
};

/* The names used since the part before it became full. */
struct part {
	struct interned addresses; /* of struct cached */
	struct buffer names;       /* struct cached_name each */
	struct texts texts;
};

struct name_cache {
	/* Per part. A full part becomes the older one. It is dropped when the next part is full, with all names not used until then. */
	size_t max_bytes;
	struct part now, older;
};

static struct part empty_part(size_t max_bytes)
{
	return (struct part){ .addresses = INTERNED_INIT(struct cached, sizeof(struct name_cache_key), 2 * max_bytes),
			      .names = BUFFER_INIT(2 * max_bytes),
			      .texts = TEXTS_INIT(2 * max_bytes) };
}

static void part_done(struct part *part)
{
	interned_done(&part->addresses);
	buffer_done(&part->names);
	texts_done(&part->texts);
}

static size_t part_bytes(const struct part *part)
{
	return (size_t)interned_bytes(&part->addresses) + part->names.size + part->texts.bytes.size;
}

struct name_cache *name_cache_new(size_t max_bytes)
{
	struct name_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->max_bytes = max_bytes / 2;
	cache->now = empty_part(cache->max_bytes);
	cache->older = empty_part(cache->max_bytes);
	return cache;
}

void name_cache_bound(struct name_cache *cache, size_t max_bytes)
{
	cache->max_bytes = max_bytes / 2;
	if (part_bytes(&cache->older) > cache->max_bytes) {
		part_done(&cache->older);
		cache->older = empty_part(cache->max_bytes);
	}
	if (part_bytes(&cache->now) > cache->max_bytes) {
		part_done(&cache->now);
		cache->now = empty_part(cache->max_bytes);
	}
}

void name_cache_free(struct name_cache *cache)
{
	if (!cache)
		return;
	part_done(&cache->now);
	part_done(&cache->older);
	free(cache);
}

size_t name_cache_bytes(const struct name_cache *cache)
{
	return part_bytes(&cache->now) + part_bytes(&cache->older);
}

static bool find_in(const struct part *part, const struct name_cache_key *key, struct symbol_name *names, uint32_t max_names,
		    uint32_t *ret_nr)
{
	uint32_t number = interned_find(&part->addresses, key);
	const struct cached *cached;

	if (number == INTERNED_NONE)
		return false;
	cached = interned_at(&part->addresses, number);
	*ret_nr = cached->nr < max_names ? cached->nr : max_names;
	for (uint32_t i = 0; i < *ret_nr; i++) {
		const struct cached_name *name = (const struct cached_name *)part->names.data + cached->first + i;

		names[i] = (struct symbol_name){ .name = texts_at(&part->texts, name->name),
						 .system_name = texts_at(&part->texts, name->system_name),
						 .file = texts_at(&part->texts, name->file),
						 .start = name->start,
						 .line = name->line,
						 .start_line = name->start_line };
	}
	return true;
}

static bool add_name(struct part *part, const struct symbol_name *name)
{
	const struct cached_name cached = { .start = name->start,
					    .line = name->line,
					    .start_line = name->start_line,
					    .name = texts_add(&part->texts, name->name),
					    .system_name = texts_add(&part->texts, name->system_name),
					    .file = texts_add(&part->texts, name->file) };

	if (cached.name == TEXTS_NONE || cached.system_name == TEXTS_NONE || cached.file == TEXTS_NONE)
		return false;
	buffer_append(&part->names, &cached, sizeof(cached));
	return !part->names.err;
}

void name_cache_add(struct name_cache *cache, const struct name_cache_key *key, const struct symbol_name *names, uint32_t nr)
{
	struct cached cached = { .key = *key, .nr = nr < NAMES_MAX ? nr : NAMES_MAX };

	if (part_bytes(&cache->now) >= cache->max_bytes) {
		part_done(&cache->older);
		cache->older = cache->now;
		cache->now = empty_part(cache->max_bytes);
	}
	cached.first = (uint32_t)(cache->now.names.size / sizeof(struct cached_name));
	for (uint32_t i = 0; i < cached.nr; i++) {
		if (!add_name(&cache->now, &names[i]))
			return;
	}
	interned_add(&cache->now.addresses, &cached);
}

bool name_cache_find(struct name_cache *cache, const struct name_cache_key *key, struct symbol_name *names, uint32_t max_names,
		     uint32_t *ret_nr)
{
	if (find_in(&cache->now, key, names, max_names, ret_nr))
		return true;
	if (!find_in(&cache->older, key, names, max_names, ret_nr))
		return false;
	if (part_bytes(&cache->now) < cache->max_bytes) /* a full part would drop `older`, with these names */
		name_cache_add(cache, key, names, *ret_nr);
	return true;
}
