/* SPDX-License-Identifier: Apache-2.0 */
/* u64_map: a hash table from 64-bit keys to 32-bit values, open addressing, at most half full. Keys that are not already
 * hashes are mixed here. Several values may stand under one key (index structures whose keys are hashes compare the entry
 * itself): u64_map_each walks them. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct u64_slot {
	uint64_t key;
	uint32_t value;
	bool used;
};

struct u64_map {
	struct u64_slot *slots;
	uint32_t nr_slots, nr_used; /* nr_slots is a power of two, or 0 */
};

void u64_map_done(struct u64_map *map);
/* Adds an entry beside those that the key has already. 0 or -ENOMEM. */
MUST_CHECK int u64_map_add(struct u64_map *map, uint64_t key, uint32_t value);
/* The value, or NULL. Borrowed and writable until the next u64_map_add. */
uint32_t *u64_map_find(const struct u64_map *map, uint64_t key);
/* The next entry of `key`: start with *cursor = 0, NULL ends. */
uint32_t *u64_map_each(const struct u64_map *map, uint64_t key, uint32_t *cursor);
/* Takes the entry (key, value) away; nothing when there is none. */
void u64_map_remove(struct u64_map *map, uint64_t key, uint32_t value);

/* A 64-bit hash of bytes, and one that goes on from another: for keys of u64_map, not against an adversary. */
uint64_t hash_bytes(const void *bytes, uint64_t size, uint64_t seed);
