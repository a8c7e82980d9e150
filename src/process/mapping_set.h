/* SPDX-License-Identifier: Apache-2.0 */
/* mapping_set: the mappings that a process and the processes it forked have in common, stored once. Immutable, reference counted. Its files
 * count as mapped while one of those processes is alive and still has these mappings; they are held while the set exists. One thread. */
#pragma once
#include "process/mapping.h"
#include "process/object_table.h"

struct mapping_set {
	struct object_table *objects; /* borrowed */
	uint32_t nr_refs, nr_living;
	uint32_t nr;
	struct process_mapping mappings[]; /* sorted by start_pc, not overlapping */
};

/* Copies the mappings. The set has one reference and no living process. NULL: no memory. */
struct mapping_set *mapping_set_new(struct object_table *objects, const struct process_mapping *mappings, uint32_t nr);
struct mapping_set *mapping_set_ref(struct mapping_set *set);
struct mapping_set *mapping_set_unref(struct mapping_set *set); /* accepts NULL, returns NULL */
/* Counts a living process that has these mappings and a reference; and the end of that. */
void mapping_set_live(struct mapping_set *set);
void mapping_set_end(struct mapping_set *set);

/* The use of a set by one process. A mapping began at from_ns and has `generation`, unless its own values in the set are later. */
struct shared_mappings {
	struct mapping_set *set;      /* a reference */
	uint64_t from_ns, until_ns;   /* UINT64_MAX: the process is alive with them */
	uint32_t generation;
};
void shared_mappings_done(struct shared_mappings *shared);
struct process_mapping shared_mapping_at(const struct shared_mappings *shared, uint32_t i);
/* Returns the mapping at `pc` at that time, with its times in the set; or NULL. */
const struct process_mapping *shared_mappings_find(const struct shared_mappings *shared, uint64_t time_ns, uint64_t pc);
/* Returns when the first mapping of a later generation began; UINT64_MAX: there is none. */
uint64_t shared_mappings_since(const struct shared_mappings *shared, uint32_t generation);

/* Returns how many of the mappings start at or before `pc`. */
uint32_t mappings_upper_bound(const struct process_mapping *mappings, uint32_t nr, uint64_t pc);
