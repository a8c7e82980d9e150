// SPDX-License-Identifier: Apache-2.0
#include "base/u64_map.h"

#include <errno.h>
#include <string.h>

/* The first slot for a key. Multiply-shift (Dietzfelbinger, 1996) by 128 random bits, plus 64: any two keys collide only by chance. The
 * last step spreads keys that count up, which would otherwise form a few long runs. */
static uint32_t home_of(const struct u64_map *map, uint64_t key)
{
	uint64_t x = (uint64_t)((unsigned __int128)map->multiplier[0] * key >> 64) + map->multiplier[1] * key + map->summand;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	return (uint32_t)(x ^ x >> 32) & (map->nr_slots - 1);
}

void u64_map_done(struct u64_map *map)
{
	free(map->slots);
	*map = (struct u64_map){ 0 };
}

static void place(struct u64_map *map, uint64_t key, uint32_t value)
{
	uint32_t i = home_of(map, key);

	while (map->slots[i].used)
		i = (i + 1) & (map->nr_slots - 1);
	map->slots[i] = (struct u64_slot){ .key = key, .value = value, .used = true };
	map->nr_used++;
}

static void choose_key(struct u64_map *map)
{
	map->multiplier[0] = hash_number(0);
	map->multiplier[1] = hash_number(1);
	map->summand = hash_number(2);
}

static int grow(struct u64_map *map)
{
	struct u64_map bigger = *map;

	if (map->nr_slots > UINT32_MAX / 4)
		return -ENOMEM;
	if (!map->nr_slots)
		choose_key(&bigger);
	bigger.nr_slots = map->nr_slots ? map->nr_slots * 2 : 64;
	bigger.nr_used = 0;
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
	uint32_t first = home_of(map, key);

	if (!map->nr_slots)
		return NULL;
	for (;;) {
		struct u64_slot *slot = &map->slots[(first + *cursor) & (map->nr_slots - 1)];

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

/* Closes the gap at `hole`: moves back the entries whose probe sequence crosses it. */
static void close_hole(struct u64_map *map, uint32_t hole)
{
	uint32_t mask = map->nr_slots - 1;

	for (uint32_t i = (hole + 1) & mask; map->slots[i].used; i = (i + 1) & mask) {
		uint32_t home = home_of(map, map->slots[i].key);

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
	for (uint32_t i = home_of(map, key); map->slots[i].used; i = (i + 1) & mask) {
		if (map->slots[i].key == key && map->slots[i].value == value) {
			close_hole(map, i);
			return;
		}
	}
}
