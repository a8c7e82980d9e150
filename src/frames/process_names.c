// SPDX-License-Identifier: Apache-2.0
#include "frames/process_names.h"

#include <stdlib.h>

#include "base/u64_map.h"

struct candidate { /* a name of a thread of the process; it changes when a program is started */
	uint64_t value;
	uint32_t tgid, comm;
	bool is_main; /* the main thread's */
};

static int by_process(const void *a, const void *b)
{
	const struct candidate *one = a, *other = b;

	if (one->tgid != other->tgid)
		return one->tgid < other->tgid ? -1 : 1;
	if (one->is_main != other->is_main)
		return one->is_main ? -1 : 1;
	return one->comm < other->comm ? -1 : one->comm > other->comm;
}

/* Fills in the names of processes' threads, adds up equal ones, and returns their number. */
static uint32_t find_candidates(const struct profile *profile, struct candidate *candidates)
{
	uint32_t value = profile_shown_value(profile), nr = 0, kept = 0;

	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);

		if (sample->tgid)
			candidates[nr++] = (struct candidate){
				(uint64_t)llabs(sample->values[value]), sample->tgid, sample->comm, sample->tid == sample->tgid
			};
	}
	qsort(candidates, nr, sizeof(*candidates), by_process);
	for (uint32_t i = 0; i < nr; i++) {
		if (kept && !by_process(&candidates[kept - 1], &candidates[i]))
			candidates[kept - 1].value += candidates[i].value;
		else
			candidates[kept++] = candidates[i];
	}
	return kept;
}

/* By process: the number of the candidate with the most, of the main thread's if there are any. */
static int choose_names(const struct candidate *candidates, uint32_t nr, struct u64_map *names)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t *known = u64_map_find(names, candidates[i].tgid);

		if (!known) {
			if (u64_map_add(names, candidates[i].tgid, i))
				return -1;
		} else if (candidates[i].is_main == candidates[*known].is_main && candidates[i].value > candidates[*known].value) {
			*known = i;
		}
	}
	return 0;
}

uint32_t *process_names(const struct profile *profile)
{
	size_t nr_samples = profile_nr_samples(profile);
	CLEANUP(freep) struct candidate *candidates = calloc(nr_samples + 1, sizeof(*candidates));
	CLEANUP(freep) uint32_t *names = calloc(nr_samples + 1, sizeof(*names));
	CLEANUP(u64_map_done) struct u64_map chosen = { 0 };

	if (!candidates || !names || choose_names(candidates, find_candidates(profile, candidates), &chosen))
		return NULL;
	for (uint32_t i = 0; i < nr_samples; i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);
		const uint32_t *known = sample->tid == sample->tgid ? NULL : u64_map_find(&chosen, sample->tgid);

		names[i] = known ? candidates[*known].comm : sample->comm;
	}
	return MOVE(names);
}
