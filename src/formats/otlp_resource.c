// SPDX-License-Identifier: Apache-2.0
#include "formats/otlp_resource.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"
#include "model/process_label.h"

bool otlp_is_of_resource(const struct profile *profile, const struct profile_label *label)
{
	return !label->is_number && process_label_is(profile_string_text(profile, label->key));
}

/* The next label of a process from *i on; NULL: there is no more. */
static const struct profile_label *next_label(const struct profile *profile, uint32_t labels, uint32_t *i)
{
	uint32_t nr;
	const struct profile_label *list = profile_labels_at(profile, labels, &nr);

	while (*i < nr) {
		if (otlp_is_of_resource(profile, &list[(*i)++]))
			return &list[*i - 1];
	}
	return NULL;
}

static bool are_equal(const struct profile *profile, uint32_t a, uint32_t b)
{
	uint32_t i = 0, j = 0;

	for (;;) {
		const struct profile_label *of_a = next_label(profile, a, &i), *of_b = next_label(profile, b, &j);

		if (!of_a || !of_b)
			return !of_a && !of_b;
		if (of_a->key != of_b->key || of_a->text != of_b->text)
			return false;
	}
}

static uint64_t hash_of(const struct profile *profile, uint32_t labels)
{
	const struct profile_label *label;
	uint64_t hash = 0;

	for (uint32_t i = 0; (label = next_label(profile, labels, &i));)
		hash = hash_bytes(&(uint32_t[]){ label->key, label->text }, 2 * sizeof(uint32_t), hash);
	return hash;
}

/* The first labels seen with the same labels of a process. */
static int find_resource(struct otlp_resources *resources, uint32_t labels, uint32_t *ret_resource)
{
	uint64_t hash = hash_of(resources->profile, labels);
	uint32_t cursor = 0;
	const uint32_t *known;

	while ((known = u64_map_each(&resources->by_hash, hash, &cursor))) {
		if (are_equal(resources->profile, *known, labels)) {
			*ret_resource = *known;
			return 0;
		}
	}
	*ret_resource = labels;
	return u64_map_add(&resources->by_hash, hash, labels);
}

static int resource_of(struct otlp_resources *resources, uint32_t labels, uint32_t *ret_resource)
{
	const uint32_t *known = u64_map_find(&resources->of_labels, labels);
	int err;

	if (known) {
		*ret_resource = *known;
		return 0;
	}
	err = find_resource(resources, labels, ret_resource);
	return err ? err : u64_map_add(&resources->of_labels, labels, *ret_resource);
}

static int by_resource(const void *a, const void *b)
{
	const struct otlp_piece *of_a = a, *of_b = b;

	if (of_a->resource != of_b->resource)
		return of_a->resource < of_b->resource ? -1 : 1;
	return of_a->position < of_b->position ? -1 : 1;
}

static int add(struct otlp_resources *resources, uint32_t sample)
{
	struct otlp_piece *piece;

	if (!array_grow(&resources->pieces, resources->nr, &resources->max, sizeof(*piece), 256, 1u << 31))
		return -ENOMEM;
	piece = &resources->pieces[resources->nr];
	*piece = (struct otlp_piece){ .position = resources->nr++, .sample = sample };
	return resource_of(resources, profile_sample_at(resources->profile, sample)->labels, &piece->resource);
}

int otlp_resources_find(struct otlp_resources *resources, const struct tracks *tracks, const struct track *first, const struct track *end)
{
	int err = 0;

	resources->nr = 0;
	for (const struct track *track = first; !err && track < end; track++) {
		for (uint32_t i = track->first; !err && i < track->first + track->nr; i++)
			err = add(resources, tracks->samples[i]);
	}
	if (!err && resources->nr)
		qsort(resources->pieces, resources->nr, sizeof(*resources->pieces), by_resource);
	return err;
}

void otlp_resources_done(struct otlp_resources *resources)
{
	u64_map_done(&resources->of_labels);
	u64_map_done(&resources->by_hash);
	free(resources->pieces);
}
