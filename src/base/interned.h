/* SPDX-License-Identifier: Apache-2.0 */
/* interned: a growing list of entries of one size in which each stands once. Equal are those whose first bytes, the key, are: padding in a
 * key has to be zero. One thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/u64_map.h"

#define INTERNED_NONE UINT32_MAX

struct interned {
	char *entries;  /* in the order in which they came */
	uint32_t nr, capacity, max, entry_bytes, key_bytes;
	struct u64_map index; /* by the hash of the key */
};

/* An empty list of `type`, each with so many bytes of key; all of them together take at most `max`. */
#define INTERNED_INIT(type, key, max_bytes) \
	((struct interned){ .entry_bytes = sizeof(type), .key_bytes = (uint32_t)(key), .max = interned_max((max_bytes), sizeof(type)) })
static inline uint32_t interned_max(uint64_t max_bytes, uint64_t entry_bytes)
{
	return max_bytes / entry_bytes < INTERNED_NONE ? (uint32_t)(max_bytes / entry_bytes) : INTERNED_NONE - 1;
}

void interned_done(struct interned *list);
/* The number of the entry with this key, or INTERNED_NONE. */
uint32_t interned_find(const struct interned *list, const void *key);
/* The number of the entry with the key that this one has; without one, of this one, copied. INTERNED_NONE: no memory, or the limit. */
uint32_t interned_add(struct interned *list, const void *entry);
/* Adds an entry under a hash of the caller's, who looks by himself (u64_map_each of `index`). Its number, or INTERNED_NONE. */
uint32_t interned_append(struct interned *list, uint64_t hash, const void *entry);
/* Nothing is found by its key or added any more, and the room for that is given back. */
void interned_close(struct interned *list);

/* Borrowed and, but for its key, writable until the next entry is added. */
static inline void *interned_at(const struct interned *list, uint32_t number)
{
	return list->entries + (size_t)number * list->entry_bytes;
}

static inline uint64_t interned_bytes(const struct interned *list)
{
	return (uint64_t)list->nr * list->entry_bytes;
}
