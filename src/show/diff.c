// SPDX-License-Identifier: Apache-2.0
#include "show/diff.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/u64_map.h"
#include "frames/frame_source.h"
#include "frames/functions.h"

#define SIGMAS 2.0

enum { BEFORE, AFTER, NR_BEFORE, NR_AFTER, NR_VALUES }; /* values of the new profile while it is made; the last two count samples */

struct merge {
	struct profile *to;
	struct u64_map by_name; /* from the hash of a frame's identity to its location in `to` */
	const struct profile *from;
	uint32_t *strings;            /* of `from`, in `to`, plus one */
	uint64_t *hashes;             /* by string of `from`: hash of its base name; 0: not computed yet */
	uint32_t *locations, *stacks; /* of `from`, in `to`, plus one */
	/* Indices of values of `from`; samples PROFILE_NONE: the number of samples is not known. */
	uint32_t value, samples;
};

static void merge_done(struct merge *merge)
{
	profile_free(merge->to);
	u64_map_done(&merge->by_name);
	free(merge->strings);
	free(merge->hashes);
	free(merge->locations);
	free(merge->stacks);
}

static const char *text_of_value(const struct profile *profile, uint32_t value, bool unit)
{
	uint32_t nr_types;
	const struct profile_value_type *types = profile_value_types(profile, &nr_types);

	return profile_string_text(profile, unit ? types[value].unit : types[value].type);
}

/* Returns the copy in `to` of a string of `from`. PROFILE_NONE: no memory. */
static uint32_t copy_string(const struct merge *merge, uint32_t string)
{
	uint32_t *known = &merge->strings[string];

	if (!*known)
		*known = profile_string(merge->to, profile_string_text(merge->from, string)) + 1; /* PROFILE_NONE: 0 again */
	return *known - 1;
}

/* Hash of a frame's name (a string of `to`), kind and source. */
static uint64_t hash_of(const struct merge *merge, const struct profile_location *location, uint32_t name)
{
	const char *source = frame_source(merge->from, location);
	uint64_t *hash = &merge->hashes[*source ? profile_function_at(merge->from, location->function)->file : PROFILE_EMPTY_STRING];

	if (!*hash)
		*hash = hash_bytes(source, strlen(source), 0) | 1;
	return hash_bytes(&(uint64_t){ (uint64_t)location->kind << 32 | name }, sizeof(uint64_t), *hash);
}

/* PROFILE_NONE: not there yet. */
static uint32_t find_named(const struct merge *merge, uint64_t hash, const struct profile_location *wanted, uint32_t name)
{
	const char *source = frame_source(merge->from, wanted);
	uint32_t cursor = 0, *found;

	while ((found = u64_map_each(&merge->by_name, hash, &cursor))) {
		const struct profile_location *at = profile_location_at(merge->to, *found);

		if (at->kind == wanted->kind && profile_function_at(merge->to, at->function)->name == name &&
		    !strcmp(frame_source(merge->to, at), source))
			return *found;
	}
	return PROFILE_NONE;
}

/* A frame is identified by its name, kind and frame_source. The other facts about its file are those of the first frame added.
 * PROFILE_NONE: no memory. */
static uint32_t add_location(struct merge *merge, const struct profile_location *location)
{
	const struct profile_function *function = profile_function_at(merge->from, location->function);
	struct profile_function named = { .name = copy_string(merge, function->name),
					  .system_name = copy_string(merge, function->system_name),
					  .file = copy_string(merge, function->file),
					  .line = function->line };
	struct profile_location frame = { .mapping = PROFILE_NONE, .kind = location->kind };
	uint64_t key = hash_of(merge, location, named.name);
	uint32_t number = find_named(merge, key, location, named.name);

	if (number != PROFILE_NONE)
		return number;
	if (named.name == PROFILE_NONE || named.system_name == PROFILE_NONE || named.file == PROFILE_NONE)
		return PROFILE_NONE;
	if (location->mapping != PROFILE_NONE) {
		struct profile_mapping mapping = { .path = copy_string(merge, profile_mapping_at(merge->from, location->mapping)->path) };

		frame.mapping = mapping.path == PROFILE_NONE ? PROFILE_NONE : profile_mapping(merge->to, &mapping);
		if (frame.mapping == PROFILE_NONE)
			return PROFILE_NONE;
	}
	frame.function = profile_function(merge->to, &named);
	number = frame.function == PROFILE_NONE ? PROFILE_NONE : profile_location(merge->to, &frame);
	return number == PROFILE_NONE || u64_map_add(&merge->by_name, key, number) ? PROFILE_NONE : number;
}

static uint32_t copy_stack(struct merge *merge, uint32_t stack)
{
	CLEANUP(freep) uint32_t *copy = NULL;
	const uint32_t *locations;
	uint32_t nr, number;

	if (merge->stacks[stack])
		return merge->stacks[stack] - 1;
	locations = profile_stack_at(merge->from, stack, &nr);
	copy = calloc((size_t)nr + 1, sizeof(*copy));
	for (uint32_t i = 0; copy && i < nr; i++) {
		uint32_t *known = &merge->locations[locations[i]];

		if (!*known)
			*known = add_location(merge, profile_location_at(merge->from, locations[i])) + 1; /* PROFILE_NONE: 0 again */
		if (!*known)
			return PROFILE_NONE;
		copy[i] = *known - 1;
	}
	number = copy ? profile_stack(merge->to, copy, nr) : PROFILE_NONE;
	merge->stacks[stack] = number + 1;
	return number;
}

static int copy_sample(struct merge *merge, const struct profile_sample *from, uint32_t side)
{
	struct profile_sample sample = { .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE, .cpu = PROFILE_NONE };

	sample.comm = copy_string(merge, from->comm);
	if (sample.comm == PROFILE_NONE)
		return -ENOMEM;
	if (from->user_stack != PROFILE_NONE && (sample.user_stack = copy_stack(merge, from->user_stack)) == PROFILE_NONE)
		return -ENOMEM;
	if (from->kernel_stack != PROFILE_NONE && (sample.kernel_stack = copy_stack(merge, from->kernel_stack)) == PROFILE_NONE)
		return -ENOMEM;
	sample.values[side] = from->values[merge->value];
	if (merge->samples != PROFILE_NONE)
		sample.values[NR_BEFORE + side] = from->values[merge->samples];
	return profile_add(merge->to, &sample);
}

static int copy_profile(struct merge *merge, const struct profile *from, const char *value, uint32_t side)
{
	int err = 0;

	free(merge->strings);
	free(merge->hashes);
	free(merge->locations);
	free(merge->stacks);
	merge->from = from;
	merge->value = profile_find_value(from, value);
	merge->samples = profile_find_value(from, "samples");
	if (merge->samples != PROFILE_NONE && strcmp(text_of_value(from, merge->samples, true), "count") != 0)
		merge->samples = PROFILE_NONE;
	merge->strings = calloc(profile_nr_strings(from), sizeof(*merge->strings));
	merge->hashes = calloc(profile_nr_strings(from), sizeof(*merge->hashes));
	merge->locations = calloc((size_t)profile_nr_locations(from) + 1, sizeof(*merge->locations));
	merge->stacks = calloc((size_t)profile_nr_stacks(from) + 1, sizeof(*merge->stacks));
	if (!merge->strings || !merge->hashes || !merge->locations || !merge->stacks)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < profile_nr_samples(from); i++)
		err = copy_sample(merge, profile_sample_at(from, i), side);
	return err;
}

/* --- the table ------------------------------------------------------------------------------------------------------------------------ */

static double change(const struct diff *diff, const int64_t values[2])
{
	return (double)values[1] / (double)diff->all[1] - (double)values[0] / (double)diff->all[0];
}

static int by_change(const void *a, const void *b, void *arg)
{
	const struct diff_row *left = a, *right = b;
	double left_self = fabs(change(arg, left->self)), right_self = fabs(change(arg, right->self));
	double left_total = fabs(change(arg, left->total)), right_total = fabs(change(arg, right->total));

	if (left_self != right_self)
		return left_self < right_self ? 1 : -1;
	if (left_total != right_total)
		return left_total < right_total ? 1 : -1;
	return left->name < right->name ? -1 : left->name > right->name;
}

static int fill_rows(struct diff *diff, const struct profile *raw)
{
	CLEANUP(functions_done) struct functions before = { 0 };
	CLEANUP(functions_done) struct functions after = { 0 };
	int err = functions_tally(raw, BEFORE, &before);

	if (!err)
		err = functions_tally(raw, AFTER, &after);
	if (err)
		return err;
	diff->rows = calloc((size_t)before.nr + 1, sizeof(*diff->rows));
	if (!diff->rows)
		return -ENOMEM;
	diff->nr_rows = before.nr; /* equal for both: the rows of the profile's locations */
	for (uint32_t i = 0; i < before.nr; i++) {
		const struct function_row *b = &before.rows[i], *a = &after.rows[i];

		diff->rows[i] = (struct diff_row){ .name = b->name,
						   .path = b->path,
						   .kind = b->kind,
						   .start_line = b->start_line,
						   .self = { b->self, a->self },
						   .total = { b->total, a->total } };
	}
	return 0;
}

bool diff_has_counts(const struct diff *diff)
{
	return diff->units_per_sample[0] > 0 && diff->units_per_sample[1] > 0;
}

bool diff_is_noise(const struct diff *diff, const int64_t values[2])
{
	double variance = 0, by = change(diff, values);

	for (int side = 0; side < 2; side++) {
		double nr_all = (double)diff->all[side] / diff->units_per_sample[side],
		       nr = (double)values[side] / diff->units_per_sample[side];

		variance += fabs(nr) / (nr_all * nr_all); /* the variance of a count is the count (Poisson) */
	}
	return by * by <= SIGMAS * SIGMAS * variance;
}

/* --- scale to the same total ---------------------------------------------------------------------------------------------------------- */

static void sum_up(const struct profile *profile, int64_t sums[NR_VALUES])
{
	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		for (int value = 0; value < NR_VALUES; value++)
			sums[value] = number_sum(sums[value], profile_sample_at(profile, i)->values[value]);
	}
}

/* Scales one side to the total `all`. Each value is off by less than one, and the sum is exact. */
static void stretch(struct profile *profile, int side, int64_t old_all, int64_t all)
{
	__int128 sum = 0;

	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		int64_t *values = profile_sample_values(profile, i), begin = (int64_t)(sum * all / old_all);

		sum += values[side];
		values[side] = (int64_t)(sum * all / old_all) - begin;
	}
}

static int settle(struct merge *merge, struct diff *diff)
{
	struct profile_value_type types[2] = { { .type = profile_string(merge->to, "before"),
						 .unit = profile_string(merge->to, diff->unit) },
					       { .type = profile_string(merge->to, "after") } };
	int64_t greater = diff->all[0] > diff->all[1] ? diff->all[0] : diff->all[1];

	types[1].unit = types[0].unit;
	if (types[0].type == PROFILE_NONE || types[1].type == PROFILE_NONE || types[0].unit == PROFILE_NONE)
		return -ENOMEM;
	for (int side = 0; side < 2; side++)
		stretch(merge->to, side, diff->all[side], greater);
	for (uint32_t i = 0; i < profile_nr_samples(merge->to); i++) {
		int64_t *values = profile_sample_values(merge->to, i);

		values[NR_BEFORE] = values[NR_AFTER] = 0;
	}
	profile_set_value_types(merge->to, types, 2, AFTER);
	account_note(profile_account(merge->to),
		     "a difference: before %" PRId64 ", after %" PRId64 " %.40s (%.40s); both are shown as shares of %" PRId64,
		     diff->all[0], diff->all[1], diff->unit, diff->type, greater);
	return 0;
}

static int check_values(const struct profile *before, const struct profile *after, const char *value, struct diag *diag)
{
	const struct profile *both[] = { before, after };
	static const char *const names[] = { "before", "after" };

	for (int side = 0; side < 2; side++) {
		uint32_t nr_sums, found = profile_find_value(both[side], value);

		if (found == PROFILE_NONE)
			return diag_errno(diag, ENODATA, "the profile %s has no values of type '%.60s' (--value names another)",
					  names[side], value);
		profile_sum_types(both[side], &nr_sums);
		if (found >= nr_sums)
			return diag_errno(diag, EINVAL, "'%.60s' is not a sum, so functions have no shares of it (--value names another)",
					  value);
	}
	if (strcmp(text_of_value(before, profile_find_value(before, value), true),
		   text_of_value(after, profile_find_value(after, value), true)) != 0)
		return diag_errno(diag, EINVAL, "the values '%.60s' are in %.60s before and in %.60s after", value,
				  text_of_value(before, profile_find_value(before, value), true),
				  text_of_value(after, profile_find_value(after, value), true));
	return 0;
}

static int make(struct merge *merge, const struct profile *before, const struct profile *after, const char *value, struct diag *diag,
		struct diff *diff)
{
	int64_t sums[NR_VALUES] = { 0 };
	struct profile_value_type unnamed[NR_VALUES] = { 0 };
	int err;

	profile_set_value_types(merge->to, unnamed, NR_VALUES, AFTER);
	err = diff_histograms(before, after, merge->to, &diff->histograms, &diff->nr_histograms);
	if (!err)
		err = copy_profile(merge, before, value, BEFORE);
	if (!err)
		err = copy_profile(merge, after, value, AFTER);
	if (err)
		return err;
	sum_up(merge->to, sums);
	for (int side = 0; side < 2; side++) {
		struct account_side *known = &profile_account(merge->to)->sides[side];

		if (sums[side] <= 0 || sums[side] == INT64_MAX)
			return diag_errno(diag, ENODATA, "the profile %s has no samples that could be compared", side ? "after" : "before");
		diff->all[side] = sums[side];
		known->all = (uint64_t)sums[side];
		known->nr_samples = sums[NR_BEFORE + side] > 0 ? (uint64_t)sums[NR_BEFORE + side] : 0;
		diff->units_per_sample[side] = sums[NR_BEFORE + side] > 0 ? (double)sums[side] / (double)sums[NR_BEFORE + side] : 0;
	}
	snprintf(diff->type, sizeof(diff->type), "%s", text_of_value(after, profile_find_value(after, value), false));
	snprintf(diff->unit, sizeof(diff->unit), "%s", text_of_value(after, profile_find_value(after, value), true));
	err = fill_rows(diff, merge->to);
	if (err)
		return err;
	qsort_r(diff->rows, diff->nr_rows, sizeof(*diff->rows), by_change, diff);
	return settle(merge, diff);
}

/* For two profiles of which one has no samples: only histograms can be compared. */
static int make_of_histograms(const struct profile *before, const struct profile *after, struct profile *to, struct diff *diff)
{
	diff->rows = calloc(1, sizeof(*diff->rows));
	return diff->rows ? diff_histograms(before, after, to, &diff->histograms, &diff->nr_histograms) : -ENOMEM;
}

int diff_make(const struct profile *before, const struct profile *after, const char *value, struct diag *diag, struct diff *ret_diff)
{
	CLEANUP(merge_done) struct merge merge = { .to = profile_new() };
	CLEANUP(diff_done) struct diff diff = { 0 };
	int err;

	if (!value)
		value = text_of_value(after, profile_shown_value(after), false);
	if (!merge.to)
		return -ENOMEM;
	if (diff_has_histograms(before) && diff_has_histograms(after) && (!profile_nr_samples(before) || !profile_nr_samples(after)))
		err = make_of_histograms(before, after, merge.to, &diff);
	else
		err = check_values(before, after, value, diag);
	if (!err && !diff.rows)
		err = make(&merge, before, after, value, diag, &diff);
	if (!err)
		err = diff_keep_histograms(merge.to, diff.histograms, diff.nr_histograms);
	if (err)
		return err;
	*ret_diff = diff;
	ret_diff->profile = MOVE(merge.to);
	diff = (struct diff){ 0 };
	return 0;
}

void diff_done(struct diff *diff)
{
	profile_free(diff->profile);
	free(diff->rows);
	free(diff->histograms);
	*diff = (struct diff){ 0 };
}

bool diff_is(const struct profile *profile)
{
	uint32_t nr_types;
	const struct profile_value_type *types = profile_value_types(profile, &nr_types);

	return nr_types == 2 && !strcmp(profile_string_text(profile, types[0].type), "before") &&
	       !strcmp(profile_string_text(profile, types[1].type), "after");
}

bool diff_format_carries(const char *format)
{
	static const char *const formats[] = { "html", "svg", "pprof", "json", "jsonl", "folded" };

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		if (!strcmp(formats[i], format))
			return true;
	}
	return false;
}
