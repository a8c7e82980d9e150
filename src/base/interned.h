/* SPDX-License-Identifier: Apache-2.0 */
/* interned: a growing list of entries of equal size, without duplicates. Two entries are equal if their first bytes, the key, are; padding
 * in a key must be zero. One thread. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/u64_map.h"

#define INTERNED_NONE UINT32_MAX

struct interned {
	char *entries;  /* in the order they were added */
	uint32_t nr, capacity, max, entry_bytes, key_bytes;
	struct u64_map index; /* by the hash of the key */
};

/* An empty list of `type` with `key` bytes of key. The entries together take at most `max_bytes`. */
#define INTERNED_INIT(type, key, max_bytes) \
	((struct interned){ .entry_bytes = sizeof(type), .key_bytes = (uint32_t)(key), .max = interned_max((max_bytes), sizeof(type)) })
static inline uint32_t interned_max(uint64_t max_bytes, uint64_t entry_bytes)
{
	return max_bytes / entry_bytes < INTERNED_NONE ? (uint32_t)(max_bytes / entry_bytes) : INTERNED_NONE - 1;
}

void interned_done(struct interned *list);
/* The number of the entry with this key, or INTERNED_NONE. */
uint32_t interned_find(const struct interned *list, const void *key);
/* Returns the number of the entry with the same key; if there is none, copies this one. INTERNED_NONE: no memory, or the limit. */
uint32_t interned_add(struct interned *list, const void *entry);
/* Adds an entry under a hash that the caller has computed; the caller looks it up himself (u64_map_each of `index`). Its number, or
 * INTERNED_NONE. */
uint32_t interned_append(struct interned *list, uint64_t hash, const void *entry);
/* Ends look-ups by key and adding, and frees the memory for them. */
void interned_close(struct interned *list);

/* Borrowed until the next entry is added. Writable, except the key. */
static inline void *interned_at(const struct interned *list, uint32_t number)
{
	return list->entries + (size_t)number * list->entry_bytes;
}

static inline uint64_t interned_bytes(const struct interned *list)
{
	return (uint64_t)list->nr * list->entry_bytes;
}
