// SPDX-License-Identifier: Apache-2.0
#include "naming/place.h"

#include "abi/record.h"
#include "base/buffer.h"
#include "base/u64_map.h"

#define PLACES_BYTES_MAX ((size_t)4 << 30)

struct place_table {
	struct buffer places; /* struct place each */
	struct u64_map by_key;
};

struct place_table *place_table_new(void)
{
	struct place_table *table = calloc(1, sizeof(*table));

	if (table)
		table->places = BUFFER_INIT(PLACES_BYTES_MAX);
	return table;
}

void place_table_free(struct place_table *table)
{
	if (!table)
		return;
	buffer_done(&table->places);
	u64_map_done(&table->by_key);
	free(table);
}

const struct place *place_at(const struct place_table *table, uint32_t place)
{
	return (const struct place *)table->places.data + place;
}

uint32_t place_nr(const struct place_table *table)
{
	return (uint32_t)(table->places.size / sizeof(struct place));
}

static bool is_same(const struct place *a, const struct place *b)
{
	if (a->object != b->object || a->is_return != b->is_return)
		return false;
	if (a->in_elf)
		return a->elf_vaddr == b->elf_vaddr;
	return a->pc == b->pc && a->tgid == b->tgid;
}

static uint32_t enter(struct place_table *table, const struct process_table *processes, const struct place *place)
{
	uint64_t words[] = { place->in_elf ? place->elf_vaddr : place->pc, place->in_elf ? place->object : (uint64_t)place->tgid << 32, place->is_return };
	uint64_t key = hash_bytes(words, sizeof(words), 0);
	uint32_t cursor = 0, *known, number = place_nr(table);

	while ((known = u64_map_each(&table->by_key, key, &cursor))) {
		if (is_same(place_at(table, *known), place))
			return *known;
	}
	buffer_append(&table->places, place, sizeof(*place));
	if (table->places.err || u64_map_add(&table->by_key, key, number))
		return PLACE_NO_MEMORY;
	if (place->object != OBJECT_NONE)
		process_table_hold_object(processes, place->object);
	return number;
}

uint32_t place_user(struct place_table *table, const struct process_table *processes, uint32_t tgid, uint64_t time_ns, uint64_t frame)
{
	struct place place = { .object = OBJECT_NONE, .tgid = tgid, .is_return = frame & SONDE_FRAME_RETURN, .pc = frame & ~SONDE_FRAME_RETURN };
	const struct process_mapping *mapping = process_table_find(processes, tgid, time_ns, place.pc - place.is_return);

	if (mapping) {
		place.start_pc = mapping->start_pc;
		place.end_pc = mapping->end_pc;
		place.file_off = mapping->file_off;
		place.object = mapping->object;
		place.in_elf = mapping->object != OBJECT_NONE && object_table_at(process_table_objects(processes), mapping->object)->elf;
		if (place.in_elf)
			place.elf_vaddr = place.pc - mapping->load_bias;
		else if (mapping->object != OBJECT_NONE)
			place.elf_vaddr = place.pc - mapping->start_pc + mapping->file_off;
	}
	return enter(table, processes, &place);
}

uint32_t place_copy(struct place_table *table, const struct process_table *processes, const struct place *place)
{
	return enter(table, processes, place);
}

void place_table_release(const struct place_table *table, const struct process_table *processes)
{
	for (uint32_t i = 0; i < place_nr(table); i++) {
		if (place_at(table, i)->object != OBJECT_NONE)
			process_table_release_object(processes, place_at(table, i)->object);
	}
}

uint32_t place_kernel(struct place_table *table, uint64_t kaddr, bool is_return, uint64_t time_ns)
{
	return enter(table, NULL, &(struct place){ .pc = kaddr, .object = OBJECT_NONE, .is_return = is_return, .first_ns = time_ns });
}

uint64_t place_pc(const struct place *place, const struct process_mapping *mappings, uint32_t nr_mappings)
{
	if (!place->in_elf)
		return place->pc;
	for (uint32_t i = 0; i < nr_mappings; i++) {
		uint64_t pc = place->elf_vaddr + mappings[i].load_bias;

		if (mappings[i].object == place->object && pc - place->is_return - mappings[i].start_pc < mappings[i].end_pc - mappings[i].start_pc)
			return pc;
	}
	return 0;
}
