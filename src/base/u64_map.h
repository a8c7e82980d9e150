/* SPDX-License-Identifier: Apache-2.0 */
/* u64_map: a hash table from 64-bit keys to 32-bit values with open addressing, at most half full. Keys may be untrusted: their slots
 * depend on random numbers of the process (base/hash.h), so no output may depend on the order of the slots. A key may have several values
 * (for indexes keyed by a hash, where the caller compares the entries): u64_map_each walks them. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/hash.h"

struct u64_slot {
	uint64_t key;
	uint32_t value;
	bool used;
};

struct u64_map {
	struct u64_slot *slots;
	uint32_t nr_slots, nr_used; /* nr_slots is a power of two, or 0 */
	uint64_t multiplier[2], summand; /* chosen when the first slots are allocated; low half first */
};

void u64_map_done(struct u64_map *map);
/* Adds an entry; other entries of the key stay. 0 or -ENOMEM. */
MUST_CHECK int u64_map_add(struct u64_map *map, uint64_t key, uint32_t value);
/* Returns a value of the key, or NULL. Borrowed and writable until the next u64_map_add. */
uint32_t *u64_map_find(const struct u64_map *map, uint64_t key);
/* Returns the next entry of `key`, NULL after the last; start with *cursor = 0. */
uint32_t *u64_map_each(const struct u64_map *map, uint64_t key, uint32_t *cursor);
/* Removes the entry (key, value), if there is one. */
void u64_map_remove(struct u64_map *map, uint64_t key, uint32_t value);
