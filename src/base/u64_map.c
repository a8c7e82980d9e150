// SPDX-License-Identifier: Apache-2.0
#include "base/u64_map.h"

#include <errno.h>
#include <string.h>

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	return x;
}

void u64_map_done(struct u64_map *map)
{
	free(map->slots);
	*map = (struct u64_map){ 0 };
}

static void place(struct u64_map *map, uint64_t key, uint32_t value)
{
	uint32_t mask = map->nr_slots - 1, i = (uint32_t)mix(key) & mask;

	while (map->slots[i].used)
		i = (i + 1) & mask;
	map->slots[i] = (struct u64_slot){ .key = key, .value = value, .used = true };
	map->nr_used++;
}

static int grow(struct u64_map *map)
{
	struct u64_map bigger = { .nr_slots = map->nr_slots ? map->nr_slots * 2 : 64 };

	if (map->nr_slots > UINT32_MAX / 4)
		return -ENOMEM;
	bigger.slots = calloc(bigger.nr_slots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->nr_slots; i++) {
		if (map->slots[i].used)
			place(&bigger, map->slots[i].key, map->slots[i].value);
	}
	free(map->slots);
	*map = bigger;
	return 0;
}

int u64_map_add(struct u64_map *map, uint64_t key, uint32_t value)
{
	if (map->nr_used >= map->nr_slots / 2) {
		int err = grow(map);

		if (err)
			return err;
	}
	place(map, key, value);
	return 0;
}

uint32_t *u64_map_each(const struct u64_map *map, uint64_t key, uint32_t *cursor)
{
	uint32_t mask = map->nr_slots - 1, first = (uint32_t)mix(key);

	if (!map->nr_slots)
		return NULL;
	for (;;) {
		struct u64_slot *slot = &map->slots[(first + *cursor) & mask];

		if (!slot->used)
			return NULL;
		++*cursor;
		if (slot->key == key)
			return &slot->value;
	}
}

uint32_t *u64_map_find(const struct u64_map *map, uint64_t key)
{
	uint32_t cursor = 0;

	return u64_map_each(map, key, &cursor);
}

/* Closes the hole at `hole` by moving back the entries whose probe sequence passes over it. */
static void close_hole(struct u64_map *map, uint32_t hole)
{
	uint32_t mask = map->nr_slots - 1;

	for (uint32_t i = (hole + 1) & mask; map->slots[i].used; i = (i + 1) & mask) {
		uint32_t home = (uint32_t)mix(map->slots[i].key) & mask;

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole].used = false;
	map->nr_used--;
}

void u64_map_remove(struct u64_map *map, uint64_t key, uint32_t value)
{
	uint32_t mask = map->nr_slots - 1;

	if (!map->nr_slots)
		return;
	for (uint32_t i = (uint32_t)mix(key) & mask; map->slots[i].used; i = (i + 1) & mask) {
		if (map->slots[i].key == key && map->slots[i].value == value) {
			close_hole(map, i);
			return;
		}
	}
}

uint64_t hash_bytes(const void *bytes, uint64_t size, uint64_t seed)
{
	const uint8_t *at = bytes;
	uint64_t hash = seed ^ size * 0x9e3779b97f4a7c15ULL, word;

	for (; size >= 8; size -= 8, at += 8) {
		memcpy(&word, at, 8);
		hash = mix(hash ^ word) * 0x9e3779b97f4a7c15ULL;
	}
	word = 0;
	memcpy(&word, at, size);
	return mix(mix(hash ^ word) * 0x9e3779b97f4a7c15ULL);
}
