/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a profile of one format: an accepted profile is consistent, a refusal gives its reason. */
#pragma once
#include <stdint.h>
#include <stdlib.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void check_stack(const struct profile *profile, uint32_t stack)
{
	uint32_t nr;
	const uint32_t *locations;

	if (stack == PROFILE_NONE)
		return;
	if (stack >= profile_nr_stacks(profile))
		abort();
	locations = profile_stack_at(profile, stack, &nr);
	for (uint32_t i = 0; i < nr; i++) {
		const struct profile_location *at;

		if (locations[i] >= profile_nr_locations(profile))
			abort();
		at = profile_location_at(profile, locations[i]);
		if (at->function >= profile_nr_functions(profile) ||
		    (at->mapping != PROFILE_NONE && at->mapping >= profile_nr_mappings(profile)) || at->kind >= FRAME_KIND_COUNT)
			abort();
	}
}

static inline void check_histograms(const struct profile *profile)
{
	for (uint32_t i = 0; i < profile_nr_histograms(profile); i++) {
		const struct profile_histogram *at = profile_histogram_at(profile, i);

		check_stack(profile, at->user_stack);
		check_stack(profile, at->kernel_stack);
		if (at->name >= profile_nr_strings(profile) || at->key >= profile_nr_strings(profile) ||
		    at->unit >= profile_nr_strings(profile) || at->comm >= profile_nr_strings(profile) ||
		    at->histogram.scale >= HISTOGRAM_SCALE_COUNT)
			abort();
		if (!histogram_has_stack(at) && (at->comm != PROFILE_EMPTY_STRING || at->tgid || at->tid))
			abort();
	}
}

/* Sums are first. */
static inline void check_types(const struct profile *profile)
{
	uint32_t nr_types, nr_sums;
	const struct profile_value_type *types = profile_value_types(profile, &nr_types);

	profile_sum_types(profile, &nr_sums);
	for (uint32_t i = 0; i < nr_types; i++) {
		if (types[i].fold >= VALUE_FOLD_COUNT || (types[i].fold == VALUE_SUM) != (i < nr_sums))
			abort();
	}
}

static inline void check_profile(const struct profile *profile)
{
	uint32_t nr_types, nr_labels;

	check_types(profile);
	check_histograms(profile);
	profile_value_types(profile, &nr_types);
	if (!nr_types || nr_types > PROFILE_MAX_VALUES || profile_shown_value(profile) >= nr_types)
		abort();
	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);
		const struct profile_label *labels = profile_labels_at(profile, sample->labels, &nr_labels);

		check_stack(profile, sample->user_stack);
		check_stack(profile, sample->kernel_stack);
		if (sample->comm >= profile_nr_strings(profile))
			abort();
		for (uint32_t k = 0; k < nr_labels; k++) {
			if (labels[k].key >= profile_nr_strings(profile) || labels[k].text >= profile_nr_strings(profile) ||
			    labels[k].unit >= profile_nr_strings(profile))
				abort();
		}
	}
}

static inline int import_any(const uint8_t *data, size_t size, enum import_format format)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	enum import_format detected;
	struct diag diag = { 0 };
	uint32_t nr_own;

	if (!profile || size > 65536)
		return 0;
	if (import_detect(data, size, NULL, &detected) == 0 && detected >= IMPORT_FORMAT_COUNT)
		abort();
	if (import_read(data, size, format, profile, &diag, &nr_own) == 0)
		check_profile(profile);
	else if (!diag.err || !diag.text[0])
		abort();
	return 0;
}
