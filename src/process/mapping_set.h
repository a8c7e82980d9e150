/* SPDX-License-Identifier: Apache-2.0 */
/* mapping_set: the mappings that a process and those that it forked have in common, kept once however many they are. Immutable and
 * reference counted. Its files count as mapped as long as one of those processes lives and has them still, and are held as long as the set
 * is. One thread. */
#pragma once
#include "process/mapping.h"
#include "process/object_table.h"

struct mapping_set {
	struct object_table *objects; /* borrowed */
	uint32_t nr_refs, nr_living;
	uint32_t nr;
	struct process_mapping mappings[]; /* sorted by start_pc, not overlapping */
};

/* Copies the mappings. One reference, none of a living process. NULL: no memory. */
struct mapping_set *mapping_set_new(struct object_table *objects, const struct process_mapping *mappings, uint32_t nr);
struct mapping_set *mapping_set_ref(struct mapping_set *set);
struct mapping_set *mapping_set_unref(struct mapping_set *set); /* takes NULL, returns NULL */
/* A process that has a reference lives with these mappings; and does not any more. */
void mapping_set_live(struct mapping_set *set);
void mapping_set_end(struct mapping_set *set);

/* What a process has, or had, of a set: from from_ns on, and of `generation`, but for what says that it came later. */
struct shared_mappings {
	struct mapping_set *set;      /* a reference */
	uint64_t from_ns, until_ns;   /* UINT64_MAX: it lives with them */
	uint32_t generation;
};
void shared_mappings_done(struct shared_mappings *shared);
struct process_mapping shared_mapping_at(const struct shared_mappings *shared, uint32_t i);
/* The one at `pc` then, with the times that it has in the set; or NULL. */
const struct process_mapping *shared_mappings_find(const struct shared_mappings *shared, uint64_t time_ns, uint64_t pc);
/* When the first began that is of a later generation; UINT64_MAX: none is. */
uint64_t shared_mappings_since(const struct shared_mappings *shared, uint32_t generation);

/* How many of the mappings start at or before `pc`. */
uint32_t mappings_upper_bound(const struct process_mapping *mappings, uint32_t nr, uint64_t pc);
