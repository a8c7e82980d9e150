// SPDX-License-Identifier: Apache-2.0
#include "stacks/samples.h"

#include <stdlib.h>

#include "base/interned.h"

#define SAMPLES_BYTES_MAX ((size_t)4 << 30)

struct samples {
	struct interned list; /* of struct sample */
	uint64_t count;
};

struct samples *samples_new(void)
{
	struct samples *samples = calloc(1, sizeof(*samples));

	if (samples)
		samples->list = INTERNED_INIT(struct sample, sizeof(struct sample_key), SAMPLES_BYTES_MAX);
	return samples;
}

void samples_free(struct samples *samples)
{
	if (!samples)
		return;
	for (uint32_t i = 0; i < samples->list.nr; i++)
		process_labels_unref(samples_at(samples, i)->key.labels);
	interned_done(&samples->list);
	free(samples);
}

uint32_t samples_add(struct samples *samples, const struct sample_key *key)
{
	uint32_t nr_before = samples->list.nr, number = interned_add(&samples->list, &(struct sample){ .key = *key });

	if (number == INTERNED_NONE)
		return SAMPLES_NO_MEMORY;
	if (samples->list.nr > nr_before)
		process_labels_ref(key->labels);
	samples->count++;
	((struct sample *)interned_at(&samples->list, number))->count++;
	return number;
}

uint32_t samples_nr(const struct samples *samples)
{
	return samples->list.nr;
}

uint64_t samples_count(const struct samples *samples)
{
	return samples->count;
}

const struct sample *samples_at(const struct samples *samples, uint32_t number)
{
	return interned_at(&samples->list, number);
}

bool samples_use(struct samples *samples, uint32_t number, uint64_t time_ns)
{
	struct sample *sample = interned_at(&samples->list, number);
	bool was_used = sample->is_used;

	if (sample->newest_ns < time_ns)
		sample->newest_ns = time_ns;
	sample->is_used = true;
	return !was_used;
}

const struct sample *samples_report(struct samples *samples, uint32_t number)
{
	struct sample *sample = interned_at(&samples->list, number);

	sample->is_used = false;
	return sample;
}

size_t samples_bytes(const struct samples *samples)
{
	return (size_t)interned_bytes(&samples->list);
}
