// SPDX-License-Identifier: Apache-2.0
#include "naming/name_cache.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/interned.h"
#include "base/texts.h"

#define NAMES_MAX 64 /* per extent */

struct cached_name {
	uint64_t start;
	uint32_t name, system_name, file; /* numbers in `texts` */
	uint32_t line, start_line;
};

/* Addresses with the same names. */
struct cached {
	struct symbol_extent extent;
	uint32_t first, nr; /* range in `names` */
	uint64_t until_ns;  /* then it is no longer true */
};

struct cached_file {
	struct name_cache_key key; /* without address */
	struct cached *list;	   /* ascending, none overlaps */
	uint32_t nr, max;
};

/* The names used since the part before it became full. */
struct part {
	struct interned files; /* of struct cached_file */
	struct buffer names;   /* struct cached_name each */
	struct texts texts;
	size_t extents_bytes;
};

struct name_cache {
	/* Per part. A full part becomes the older one. It is dropped when the next part is full, with all names not used until then. */
	size_t max_bytes;
	struct part now, older;
	uint64_t now_ns;
};

static struct part empty_part(size_t max_bytes)
{
	return (struct part){ .files = INTERNED_INIT(struct cached_file, offsetof(struct name_cache_key, address), 2 * max_bytes),
			      .names = BUFFER_INIT(2 * max_bytes),
			      .texts = TEXTS_INIT(2 * max_bytes) };
}

static struct cached_file *file_at(const struct part *part, uint32_t number)
{
	return interned_at(&part->files, number);
}

static void part_done(struct part *part)
{
	for (uint32_t i = 0; i < part->files.nr; i++)
		free(file_at(part, i)->list);
	interned_done(&part->files);
	buffer_done(&part->names);
	texts_done(&part->texts);
}

static size_t part_bytes(const struct part *part)
{
	return (size_t)interned_bytes(&part->files) + part->extents_bytes + part->names.size + part->texts.bytes.size;
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

void name_cache_now(struct name_cache *cache, uint64_t now_ns)
{
	cache->now_ns = now_ns;
}

size_t name_cache_bytes(const struct name_cache *cache)
{
	return part_bytes(&cache->now) + part_bytes(&cache->older);
}

/* The number of extents that start at or before the address. */
static uint32_t nr_before(const struct cached_file *file, uint64_t address)
{
	return array_count_starts(file->list, file->nr, sizeof(*file->list), address);
}

/* NULL: no extent has the address. */
static struct cached *find_in(const struct part *part, const struct name_cache_key *key)
{
	uint32_t number = interned_find(&part->files, key);
	const struct cached_file *file = number == INTERNED_NONE ? NULL : file_at(part, number);
	uint32_t nr = file ? nr_before(file, key->address) : 0;

	return nr && key->address < file->list[nr - 1].extent.end ? &file->list[nr - 1] : NULL;
}

static uint32_t take(const struct part *part, const struct cached *cached, struct symbol_name *names, uint32_t max_names)
{
	uint32_t nr = cached->nr < max_names ? cached->nr : max_names;

	for (uint32_t i = 0; i < nr; i++) {
		const struct cached_name *name = (const struct cached_name *)part->names.data + cached->first + i;

		names[i] = (struct symbol_name){ .name = texts_at(&part->texts, name->name),
						 .system_name = texts_at(&part->texts, name->system_name),
						 .file = texts_at(&part->texts, name->file),
						 .start = name->start,
						 .line = name->line,
						 .start_line = name->start_line };
	}
	return nr;
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

/* The part of the extent around the address that no other has. `at`: its place among them. */
static struct symbol_extent free_extent(const struct cached_file *file, uint32_t at, uint64_t address, const struct symbol_extent *extent)
{
	struct symbol_extent own = *extent;

	if (address < own.start || address >= own.end)
		own = (struct symbol_extent){ .start = address, .end = address + 1 };
	if (at && own.start < file->list[at - 1].extent.end)
		own.start = file->list[at - 1].extent.end;
	if (at < file->nr && own.end > file->list[at].extent.start)
		own.end = file->list[at].extent.start;
	return own;
}

/* The address is in none. */
static void insert(struct part *part, const struct name_cache_key *key, const struct symbol_extent *extent, struct cached *cached)
{
	const struct cached_file fresh = { .key = *key };
	uint32_t number = interned_add(&part->files, &fresh), at;
	struct cached_file *file = number == INTERNED_NONE ? NULL : file_at(part, number);
	uint32_t max_before = file ? file->max : 0;

	if (!file || !array_grow(&file->list, file->nr, &file->max, sizeof(*file->list), 1, UINT32_MAX / 2))
		return;
	part->extents_bytes += (file->max - max_before) * sizeof(*file->list);
	at = nr_before(file, key->address);
	cached->extent = free_extent(file, at, key->address, extent);
	memmove(file->list + at + 1, file->list + at, (file->nr - at) * sizeof(*file->list));
	file->list[at] = *cached;
	file->nr++;
}

/* The address is in an extent. */
static void remove_at(struct part *part, const struct name_cache_key *key)
{
	struct cached_file *file = file_at(part, interned_find(&part->files, key));
	uint32_t at = nr_before(file, key->address) - 1;

	memmove(file->list + at, file->list + at + 1, (--file->nr - at) * sizeof(*file->list));
}

static void add(struct name_cache *cache, const struct name_cache_key *key, const struct symbol_extent *extent,
		const struct symbol_name *names, uint32_t nr, uint64_t until_ns)
{
	struct cached cached = { .nr = nr < NAMES_MAX ? nr : NAMES_MAX, .until_ns = until_ns };
	const struct cached *known;

	if (part_bytes(&cache->now) >= cache->max_bytes) {
		part_done(&cache->older);
		cache->older = cache->now;
		cache->now = empty_part(cache->max_bytes);
	}
	known = find_in(&cache->now, key);
	if (known && known->until_ns > cache->now_ns) /* with another address of the same extent */
		return;
	if (known)
		remove_at(&cache->now, key);
	cached.first = (uint32_t)(cache->now.names.size / sizeof(struct cached_name));
	for (uint32_t i = 0; i < cached.nr; i++) {
		if (!add_name(&cache->now, &names[i]))
			return;
	}
	insert(&cache->now, key, extent, &cached);
}

void name_cache_add(struct name_cache *cache, const struct name_cache_key *key, const struct symbol_extent *extent,
		    const struct symbol_name *names, uint32_t nr)
{
	add(cache, key, extent, names, nr, nr ? UINT64_MAX : cache->now_ns + NAME_CACHE_NAMELESS_NS);
}

bool name_cache_find(struct name_cache *cache, const struct name_cache_key *key, struct symbol_name *names, uint32_t max_names,
		     uint32_t *ret_nr)
{
	const struct cached *cached = find_in(&cache->now, key);

	if (cached && cached->until_ns > cache->now_ns) {
		*ret_nr = take(&cache->now, cached, names, max_names);
		return true;
	}
	cached = find_in(&cache->older, key);
	if (!cached || cached->until_ns <= cache->now_ns)
		return false;
	*ret_nr = take(&cache->older, cached, names, max_names);
	if (part_bytes(&cache->now) < cache->max_bytes) /* a full part would drop `older`, with these names */
		add(cache, key, &cached->extent, names, *ret_nr, cached->until_ns);
	return true;
}
