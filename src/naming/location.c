// SPDX-License-Identifier: Apache-2.0
#include "naming/location.h"

#include "abi/record.h"
#include "base/buffer.h"
#include "base/u64_map.h"

#define LOCATIONS_BYTES_MAX ((size_t)4 << 30)

struct location_table {
	struct buffer locations; /* struct location each */
	struct u64_map by_key;
};

struct location_table *location_table_new(void)
{
	struct location_table *table = calloc(1, sizeof(*table));

	if (table)
		table->locations = BUFFER_INIT(LOCATIONS_BYTES_MAX);
	return table;
}

void location_table_free(struct location_table *table)
{
	if (!table)
		return;
	buffer_done(&table->locations);
	u64_map_done(&table->by_key);
	free(table);
}

const struct location *location_at(const struct location_table *table, uint32_t location)
{
	return (const struct location *)table->locations.data + location;
}

uint32_t location_nr(const struct location_table *table)
{
	return (uint32_t)(table->locations.size / sizeof(struct location));
}

static bool is_same(const struct location *a, const struct location *b)
{
	if (a->object != b->object || a->is_return != b->is_return)
		return false;
	if (a->in_elf)
		return a->elf_vaddr == b->elf_vaddr;
	return a->pc == b->pc && a->tgid == b->tgid;
}

static uint32_t enter(struct location_table *table, const struct process_table *processes, const struct location *location)
{
	uint64_t words[] = { location->in_elf ? location->elf_vaddr : location->pc,
			     location->in_elf ? location->object : (uint64_t)location->tgid << 32, location->is_return };
	uint64_t key = hash_bytes(words, sizeof(words), 0);
	uint32_t cursor = 0, *known, number = location_nr(table);

	while ((known = u64_map_each(&table->by_key, key, &cursor))) {
		if (is_same(location_at(table, *known), location))
			return *known;
	}
	buffer_append(&table->locations, location, sizeof(*location));
	if (table->locations.err || u64_map_add(&table->by_key, key, number))
		return LOCATION_NO_MEMORY;
	if (location->object != OBJECT_NONE)
		process_table_hold_object(processes, location->object);
	return number;
}

uint32_t location_user(struct location_table *table, const struct process_table *processes, uint32_t tgid, uint64_t time_ns, uint64_t frame)
{
	struct location location = {
		.object = OBJECT_NONE, .tgid = tgid, .is_return = frame & SONDE_FRAME_RETURN, .pc = frame & ~SONDE_FRAME_RETURN
	};
	const struct process_mapping *mapping = process_table_find(processes, tgid, time_ns, location.pc - location.is_return);

	if (mapping) {
		location.start_pc = mapping->start_pc;
		location.end_pc = mapping->end_pc;
		location.file_off = mapping->file_off;
		location.object = mapping->object;
		location.in_elf = mapping->object != OBJECT_NONE && object_table_at(process_table_objects(processes), mapping->object)->elf;
		if (location.in_elf)
			location.elf_vaddr = location.pc - mapping->load_bias;
		else if (mapping->object != OBJECT_NONE)
			location.elf_vaddr = location.pc - mapping->start_pc + mapping->file_off;
	}
	return enter(table, processes, &location);
}

uint32_t location_copy(struct location_table *table, const struct process_table *processes, const struct location *location)
{
	return enter(table, processes, location);
}

void location_table_release(const struct location_table *table, const struct process_table *processes)
{
	for (uint32_t i = 0; i < location_nr(table); i++) {
		if (location_at(table, i)->object != OBJECT_NONE)
			process_table_release_object(processes, location_at(table, i)->object);
	}
}

uint32_t location_kernel(struct location_table *table, uint64_t kaddr, bool is_return, uint64_t time_ns)
{
	return enter(table, NULL, &(struct location){ .pc = kaddr, .object = OBJECT_NONE, .is_return = is_return, .first_ns = time_ns });
}

uint64_t location_pc(const struct location *location, const struct process_mapping *mappings, uint32_t nr_mappings)
{
	if (!location->in_elf)
		return location->pc;
	for (uint32_t i = 0; i < nr_mappings; i++) {
		uint64_t pc = location->elf_vaddr + mappings[i].load_bias;

		if (mappings[i].object == location->object &&
		    pc - location->is_return - mappings[i].start_pc < mappings[i].end_pc - mappings[i].start_pc)
			return pc;
	}
	return 0;
}
