/* SPDX-License-Identifier: Apache-2.0 */
/* u64_map: a hash table from 64-bit keys to 32-bit values, open addressing, at most half full. Keys may be anything, also what strangers
 * choose: where they stand depends on random numbers of the process (base/hash.h), and so does the order of the slots, of which no output
 * may come. Several values may stand under one key (index structures whose keys are hashes compare the entry itself): u64_map_each walks
 * them. One thread. */
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
	uint64_t multiplier[2], summand; /* chosen with the first slots; low half first */
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
