// SPDX-License-Identifier: Apache-2.0
#include "process/mapping_set.h"

#include <string.h>

#include "base/array.h"

struct mapping_set *mapping_set_new(struct object_table *objects, const struct process_mapping *mappings, uint32_t nr)
{
	struct mapping_set *set = malloc(sizeof(*set) + nr * sizeof(*mappings));

	if (!set)
		return NULL;
	*set = (struct mapping_set){ .objects = objects, .nr_refs = 1, .nr = nr };
	memcpy(set->mappings, mappings, nr * sizeof(*mappings));
	for (uint32_t i = 0; i < nr; i++)
		object_table_hold(objects, mappings[i].object);
	return set;
}

struct mapping_set *mapping_set_ref(struct mapping_set *set)
{
	set->nr_refs++;
	return set;
}

struct mapping_set *mapping_set_unref(struct mapping_set *set)
{
	if (!set || --set->nr_refs)
		return NULL;
	for (uint32_t i = 0; i < set->nr; i++)
		object_table_release(set->objects, set->mappings[i].object);
	free(set);
	return NULL;
}

void mapping_set_live(struct mapping_set *set)
{
	if (set->nr_living++)
		return;
	for (uint32_t i = 0; i < set->nr; i++)
		object_table_map(set->objects, set->mappings[i].object);
}

void mapping_set_end(struct mapping_set *set)
{
	if (--set->nr_living)
		return;
	for (uint32_t i = 0; i < set->nr; i++)
		object_table_unmap(set->objects, set->mappings[i].object);
}

void shared_mappings_done(struct shared_mappings *shared)
{
	if (shared->until_ns == UINT64_MAX)
		mapping_set_end(shared->set);
	shared->set = mapping_set_unref(shared->set);
}

struct process_mapping shared_mapping_at(const struct shared_mappings *shared, uint32_t i)
{
	struct process_mapping mapping = shared->set->mappings[i];

	if (mapping.from_ns < shared->from_ns)
		mapping.from_ns = shared->from_ns;
	if (mapping.generation < shared->generation) /* generations grow */
		mapping.generation = shared->generation;
	mapping.until_ns = shared->until_ns;
	return mapping;
}

const struct process_mapping *shared_mappings_find(const struct shared_mappings *shared, uint64_t time_ns, uint64_t pc)
{
	const struct mapping_set *set = shared->set;
	uint32_t i = mappings_upper_bound(set->mappings, set->nr, pc);

	if (!i || pc >= set->mappings[i - 1].end_pc || time_ns > shared->until_ns)
		return NULL;
	return shared_mapping_at(shared, i - 1).from_ns <= time_ns ? &set->mappings[i - 1] : NULL;
}

uint64_t shared_mappings_since(const struct shared_mappings *shared, uint32_t generation)
{
	uint64_t first_ns = UINT64_MAX;

	for (uint32_t i = 0; i < shared->set->nr; i++) {
		struct process_mapping mapping = shared_mapping_at(shared, i);

		if (mapping.generation > generation && mapping.from_ns < first_ns)
			first_ns = mapping.from_ns;
	}
	return first_ns;
}

uint32_t mappings_upper_bound(const struct process_mapping *mappings, uint32_t nr, uint64_t pc)
{
	return array_count_starts(mappings, nr, sizeof(*mappings), pc);
}
