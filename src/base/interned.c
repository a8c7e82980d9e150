// SPDX-License-Identifier: Apache-2.0
#include "base/interned.h"

#include <string.h>

#include "base/array.h"

#define FIRST 64 /* initial capacity */

void interned_done(struct interned *list)
{
	free(list->entries);
	u64_map_done(&list->index);
}

void interned_close(struct interned *list)
{
	u64_map_done(&list->index);
	list->max = list->nr;
	if (list->nr)
		array_shrink(&list->entries, (size_t)list->nr * list->entry_bytes);
	list->capacity = list->nr;
}

static uint32_t find(const struct interned *list, uint64_t hash, const void *key)
{
	uint32_t cursor = 0, *found;

	while ((found = u64_map_each(&list->index, hash, &cursor))) {
		if (!memcmp(interned_at(list, *found), key, list->key_bytes))
			return *found;
	}
	return INTERNED_NONE;
}

uint32_t interned_find(const struct interned *list, const void *key)
{
	return find(list, hash_bytes(key, list->key_bytes, 0), key);
}

uint32_t interned_append(struct interned *list, uint64_t hash, const void *entry)
{
	if (list->nr == list->max || !array_grow(&list->entries, list->nr, &list->capacity, list->entry_bytes, FIRST, INTERNED_NONE) ||
	    u64_map_add(&list->index, hash, list->nr))
		return INTERNED_NONE;
	memcpy(interned_at(list, list->nr), entry, list->entry_bytes);
	return list->nr++;
}

uint32_t interned_add(struct interned *list, const void *entry)
{
	uint64_t hash = hash_bytes(entry, list->key_bytes, 0);
	uint32_t known = find(list, hash, entry);

	return known == INTERNED_NONE ? interned_append(list, hash, entry) : known;
}
