// SPDX-License-Identifier: Apache-2.0
#include "model/profile_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of entries of `from` in `to`, plus one; 0: not copied yet. */
struct merge {
	struct profile *to;
	const struct profile *from;
	bool without_times;
	uint32_t *strings, *mappings, *functions, *locations, *stacks;
};

static void merge_done(struct merge *merge)
{
	free(merge->strings);
	free(merge->mappings);
	free(merge->functions);
	free(merge->locations);
	free(merge->stacks);
}

static uint32_t *numbers(uint32_t nr)
{
	return calloc((size_t)nr + 1, sizeof(uint32_t));
}

/* Each copy_ function returns the entry's number in `to`; PROFILE_NONE: no memory. *known is then 0 again. */
static uint32_t copy_string(const struct merge *merge, uint32_t string)
{
	uint32_t *known = &merge->strings[string];

	if (!*known)
		*known = profile_string(merge->to, profile_string_text(merge->from, string)) + 1;
	return *known - 1;
}

static uint32_t copy_mapping(const struct merge *merge, uint32_t mapping)
{
	uint32_t *known = &merge->mappings[mapping];
	struct profile_mapping copy = *profile_mapping_at(merge->from, mapping);

	if (*known)
		return *known - 1;
	copy.path = copy_string(merge, copy.path);
	copy.build_id = copy_string(merge, copy.build_id);
	if (copy.path != PROFILE_NONE && copy.build_id != PROFILE_NONE)
		*known = profile_mapping(merge->to, &copy) + 1;
	return *known - 1;
}

static uint32_t copy_function(const struct merge *merge, uint32_t function)
{
	uint32_t *known = &merge->functions[function];
	struct profile_function copy = *profile_function_at(merge->from, function);

	if (*known)
		return *known - 1;
	copy.name = copy_string(merge, copy.name);
	copy.system_name = copy_string(merge, copy.system_name);
	copy.file = copy_string(merge, copy.file);
	if (copy.name != PROFILE_NONE && copy.system_name != PROFILE_NONE && copy.file != PROFILE_NONE)
		*known = profile_function(merge->to, &copy) + 1;
	return *known - 1;
}

static uint32_t copy_location(const struct merge *merge, uint32_t location)
{
	uint32_t *known = &merge->locations[location];
	struct profile_location copy = *profile_location_at(merge->from, location);

	if (*known)
		return *known - 1;
	if (copy.mapping != PROFILE_NONE) {
		copy.mapping = copy_mapping(merge, copy.mapping);
		if (copy.mapping == PROFILE_NONE)
			return PROFILE_NONE;
	}
	copy.function = copy_function(merge, copy.function);
	if (copy.function != PROFILE_NONE)
		*known = profile_location(merge->to, &copy) + 1;
	return *known - 1;
}

/* PROFILE_NONE, which is no stack, stays so. */
static int copy_stack(const struct merge *merge, uint32_t *stack)
{
	CLEANUP(freep) uint32_t *copy = NULL;
	const uint32_t *locations;
	uint32_t nr;

	if (*stack == PROFILE_NONE)
		return 0;
	if (!merge->stacks[*stack]) {
		locations = profile_stack_at(merge->from, *stack, &nr);
		copy = numbers(nr);
		for (uint32_t i = 0; copy && i < nr; i++) {
			copy[i] = copy_location(merge, locations[i]);
			if (copy[i] == PROFILE_NONE)
				return -ENOMEM;
		}
		merge->stacks[*stack] = copy ? profile_stack(merge->to, copy, nr) + 1 : 0;
	}
	*stack = merge->stacks[*stack] - 1;
	return *stack == PROFILE_NONE ? -ENOMEM : 0;
}

static uint32_t copy_labels(const struct merge *merge, uint32_t labels)
{
	CLEANUP(freep) struct profile_label *copy = NULL;
	uint32_t nr;
	const struct profile_label *from = profile_labels_at(merge->from, labels, &nr);

	if (!nr)
		return PROFILE_NO_LABELS;
	copy = calloc(nr, sizeof(*copy));
	for (uint32_t i = 0; copy && i < nr; i++) {
		copy[i] = from[i];
		copy[i].key = copy_string(merge, from[i].key);
		copy[i].text = copy_string(merge, from[i].text);
		copy[i].unit = copy_string(merge, from[i].unit);
		if (copy[i].key == PROFILE_NONE || copy[i].text == PROFILE_NONE || copy[i].unit == PROFILE_NONE)
			return PROFILE_NONE;
	}
	return copy ? profile_labels(merge->to, copy, nr) : PROFILE_NONE;
}

static int copy_sample(const struct merge *merge, uint32_t number)
{
	struct profile_sample sample = *profile_sample_at(merge->from, number);
	int err = copy_stack(merge, &sample.user_stack);

	if (!err)
		err = copy_stack(merge, &sample.kernel_stack);
	sample.comm = copy_string(merge, sample.comm);
	sample.labels = copy_labels(merge, sample.labels);
	if (merge->without_times)
		sample.time_ns = 0;
	if (!err && (sample.comm == PROFILE_NONE || sample.labels == PROFILE_NONE))
		err = -ENOMEM;
	return err ? err : profile_add(merge->to, &sample);
}

static int copy_histogram(const struct merge *merge, uint32_t number)
{
	struct profile_histogram histogram = *profile_histogram_at(merge->from, number);
	int err = copy_stack(merge, &histogram.user_stack);

	if (!err)
		err = copy_stack(merge, &histogram.kernel_stack);
	histogram.name = copy_string(merge, histogram.name);
	histogram.unit = copy_string(merge, histogram.unit);
	histogram.key = copy_string(merge, histogram.key);
	histogram.comm = copy_string(merge, histogram.comm);
	if (err || histogram.name == PROFILE_NONE || histogram.unit == PROFILE_NONE || histogram.key == PROFILE_NONE ||
	    histogram.comm == PROFILE_NONE)
		return err ? err : -ENOMEM;
	return profile_histogram(merge->to, &histogram) == PROFILE_NONE ? -ENOMEM : 0;
}

/* Gives an empty profile the types of `from`; else checks that they are the same. */
static int copy_types(const struct merge *merge)
{
	struct profile_value_type copies[PROFILE_MAX_VALUES];
	uint32_t nr, nr_old;
	const struct profile_value_type *types = profile_value_types(merge->from, &nr), *old = profile_value_types(merge->to, &nr_old);

	for (uint32_t i = 0; i < nr; i++) {
		copies[i] = (struct profile_value_type){ .type = copy_string(merge, types[i].type),
							 .unit = copy_string(merge, types[i].unit),
							 .fold = types[i].fold };
		if (copies[i].type == PROFILE_NONE || copies[i].unit == PROFILE_NONE)
			return -ENOMEM;
	}
	if (profile_nr_samples(merge->to) || profile_nr_histograms(merge->to))
		return nr == nr_old && !memcmp(copies, old, nr * sizeof(*copies)) ? 0 : -EINVAL;
	profile_set_value_types(merge->to, copies, nr, profile_shown_value(merge->from));
	return 0;
}

struct range {
	uint32_t from, end;
};

static struct range range_of_part(uint32_t nr, uint32_t part, uint32_t nr_parts)
{
	return (struct range){ .from = (uint32_t)((uint64_t)nr * part / nr_parts),
			       .end = (uint32_t)((uint64_t)nr * (part + 1) / nr_parts) };
}

struct position {
	uint32_t tgid, sample;
};

static int by_process(const void *a, const void *b)
{
	const struct position *of_a = a, *of_b = b;

	if (of_a->tgid != of_b->tgid)
		return of_a->tgid < of_b->tgid ? -1 : 1;
	return of_a->sample < of_b->sample ? -1 : 1;
}

/* The samples, those of a process together. NULL: no memory. */
static struct position *sort_samples(const struct profile *profile)
{
	uint32_t nr = profile_nr_samples(profile);
	struct position *sorted = calloc((size_t)nr + 1, sizeof(*sorted));

	for (uint32_t i = 0; sorted && i < nr; i++)
		sorted[i] = (struct position){ profile_sample_at(profile, i)->tgid, i };
	if (sorted)
		qsort(sorted, nr, sizeof(*sorted), by_process);
	return sorted;
}

static int copy_samples(const struct merge *merge, uint32_t part, uint32_t nr_parts)
{
	struct range range = range_of_part(profile_nr_samples(merge->from), part, nr_parts);
	CLEANUP(freep) struct position *sorted = nr_parts > 1 ? sort_samples(merge->from) : NULL;
	int err = nr_parts > 1 && !sorted ? -ENOMEM : 0;

	for (uint32_t i = range.from; !err && i < range.end; i++)
		err = copy_sample(merge, sorted ? sorted[i].sample : i);
	return err;
}

static int copy_histograms(const struct merge *merge, uint32_t part, uint32_t nr_parts)
{
	struct range range = range_of_part(profile_nr_histograms(merge->from), part, nr_parts);
	int err = 0;

	for (uint32_t i = range.from; !err && i < range.end; i++)
		err = copy_histogram(merge, i);
	return err;
}

static int merge_part(struct profile *to, const struct profile *from, uint32_t part, uint32_t nr_parts, bool without_times)
{
	CLEANUP(merge_done) struct merge merge = {
		.to = to,
		.from = from,
		.without_times = without_times,
		.strings = numbers(profile_nr_strings(from)),
		.mappings = numbers(profile_nr_mappings(from)),
		.functions = numbers(profile_nr_functions(from)),
		.locations = numbers(profile_nr_locations(from)),
		.stacks = numbers(profile_nr_stacks(from)),
	};
	int err = merge.strings && merge.mappings && merge.functions && merge.locations && merge.stacks ? copy_types(&merge) : -ENOMEM;

	if (!err)
		err = copy_samples(&merge, part, nr_parts) ?: copy_histograms(&merge, part, nr_parts);
	if (!err)
		account_merge(profile_account(to), profile_account_of(from));
	return err;
}

int profile_merge_part(struct profile *to, const struct profile *from, uint32_t part, uint32_t nr_parts)
{
	return merge_part(to, from, part, nr_parts, false);
}

int profile_merge(struct profile *to, const struct profile *from)
{
	return merge_part(to, from, 0, 1, false);
}

int profile_without_times(const struct profile *from, struct profile **ret_profile)
{
	CLEANUP(profile_freep) struct profile *profile = profile_new();
	int err = profile ? merge_part(profile, from, 0, 1, true) : -ENOMEM;

	if (!err)
		*ret_profile = MOVE(profile);
	return err;
}

/* --- the account ---------------------------------------------------------------------------------------------------------------------- */

/* A process runs through many windows: the most at a time, not their sum. */
static void merge_runtime(struct account *account, const struct account_runtime *more)
{
	for (uint32_t i = 0; i < account->nr_runtimes; i++) {
		struct account_runtime *known = &account->runtimes[i];

		if (strcmp(known->name, more->name) != 0 || strcmp(known->version, more->version) != 0)
			continue;
		if (known->nr_processes < more->nr_processes)
			known->nr_processes = more->nr_processes;
		return;
	}
	account_runtime(account, more->name, more->version, more->nr_processes);
}

#define RATES_DIFFER "not all windows were sampled at the same rate: a sample of those at a lower one stands for more time"
#define KEEP_LARGEST(field) account->field = account->field > more->field ? account->field : more->field

void account_merge(struct account *account, const struct account *more)
{
	if (!account->start_unix_ns && !account->duration_ns) { /* nothing yet */
		*account = *more;
		return;
	}
	if (account->freq_hz != more->freq_hz && !account_has_note(account, RATES_DIFFER))
		account_note(account, "%s", RATES_DIFFER);
	if (more->start_unix_ns < account->start_unix_ns)
		account->start_unix_ns = more->start_unix_ns;
	account->duration_ns += more->duration_ns;
	account_counts_add(&account->counts, &more->counts);
	KEEP_LARGEST(nr_cpus);
	KEEP_LARGEST(max_rss_bytes);
	KEEP_LARGEST(bpf_map_bytes);
	KEEP_LARGEST(startup_ns);
	KEEP_LARGEST(unwind_rows);
	KEEP_LARGEST(unwind_bytes);
	KEEP_LARGEST(nr_processes);
	KEEP_LARGEST(nr_objects);
	account->has_waits |= more->has_waits;
	for (uint32_t i = 0; i < more->nr_runtimes; i++)
		merge_runtime(account, &more->runtimes[i]);
	account->nr_runtimes_refused += more->nr_runtimes_refused;
	account_add_notes(account, more, 0);
	account->nr_notes_refused += more->nr_notes_refused;
}
