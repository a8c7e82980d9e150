// SPDX-License-Identifier: Apache-2.0
#include "page/process_names.h"

#include <stdlib.h>

#include "base/u64_map.h"

struct leader { /* a name of a main thread: it changes when a program is started */
	uint64_t value;
	uint32_t tgid, comm;
};

static bool is_leader(const struct profile_sample *sample)
{
	return !sample->tgid || sample->tid == sample->tgid;
}

static int by_process(const void *a, const void *b)
{
	const struct leader *one = a, *other = b;

	if (one->tgid != other->tgid)
		return one->tgid < other->tgid ? -1 : 1;
	return one->comm < other->comm ? -1 : one->comm > other->comm;
}

/* Fills in the leaders' samples, adds up equal ones, and returns their number. */
static uint32_t find_leaders(const struct profile *profile, struct leader *leaders)
{
	uint32_t value = profile_shown_value(profile), nr = 0, kept = 0;

	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);

		if (sample->tgid && is_leader(sample))
			leaders[nr++] = (struct leader){ (uint64_t)llabs(sample->values[value]), sample->tgid, sample->comm };
	}
	qsort(leaders, nr, sizeof(*leaders), by_process);
	for (uint32_t i = 0; i < nr; i++) {
		if (kept && !by_process(&leaders[kept - 1], &leaders[i]))
			leaders[kept - 1].value += leaders[i].value;
		else
			leaders[kept++] = leaders[i];
	}
	return kept;
}

/* By process: the number of the leader with the most. */
static int choose_names(const struct leader *leaders, uint32_t nr, struct u64_map *names)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t *known = u64_map_find(names, leaders[i].tgid);

		if (!known) {
			if (u64_map_add(names, leaders[i].tgid, i))
				return -1;
		} else if (leaders[i].value > leaders[*known].value) {
			*known = i;
		}
	}
	return 0;
}

uint32_t *process_names(const struct profile *profile)
{
	size_t nr_samples = profile_nr_samples(profile);
	CLEANUP(freep) struct leader *leaders = calloc(nr_samples + 1, sizeof(*leaders));
	CLEANUP(freep) uint32_t *names = calloc(nr_samples + 1, sizeof(*names));
	CLEANUP(u64_map_done) struct u64_map by_process_id = { 0 };

	if (!leaders || !names || choose_names(leaders, find_leaders(profile, leaders), &by_process_id))
		return NULL;
	for (uint32_t i = 0; i < nr_samples; i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);
		const uint32_t *known = is_leader(sample) ? NULL : u64_map_find(&by_process_id, sample->tgid);

		names[i] = known ? leaders[*known].comm : sample->comm;
	}
	return MOVE(names);
}
