// SPDX-License-Identifier: Apache-2.0
#include "model/profile.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/interned.h"
#include "base/number.h"
#include "base/utf8.h"

#define ELLIPSIS "..."
#define MAX_BLOB_BYTES ((size_t)4 << 30) /* limit for the texts, stacks and labels of one profile, together */

/* A text, a stack or a set of labels; the bytes are in the arena. */
struct blob {
	const void *bytes;
	size_t size;
};

struct profile {
	struct arena *arena;
	struct interned strings, stacks, labels; /* of struct blob */
	struct interned mappings, functions, locations, samples, histograms;
	struct profile_value_type value_types[PROFILE_MAX_VALUES];
	uint32_t nr_value_types, shown_value;
	struct account account;
};

/* Sizes of the compared parts: all fields, without the padding behind them, a sample's values, or a histogram's counts. */
#define LOCATION_KEY_BYTES (offsetof(struct profile_location, is_nameless) + sizeof(uint32_t))
#define SAMPLE_KEY_BYTES   offsetof(struct profile_sample, values)
#define HISTOGRAM_KEY_BYTES offsetof(struct profile_histogram, histogram.slots)
_Static_assert(sizeof(struct profile_mapping) == 3 * 8 + 2 * 4, "no padding: it is compared as bytes");
_Static_assert(sizeof(struct profile_function) == 4 * 4, "no padding: it is compared as bytes");
_Static_assert(LOCATION_KEY_BYTES == 3 * 8 + 6 * 4, "no padding: it is compared as bytes");
_Static_assert(sizeof(struct profile_label) == 8 + 4 * 4, "no padding: it is compared as bytes");
_Static_assert(HISTOGRAM_KEY_BYTES == 8 * 4 + 2 * 4, "no padding: it is compared as bytes");
_Static_assert(SAMPLE_KEY_BYTES == 8 * 4 + 8, "no padding: it is compared as bytes");

const char *frame_kind_name(enum frame_kind kind)
{
	static const char *const names[] = {
		[FRAME_NATIVE] = "native",
		[FRAME_KERNEL] = "kernel",
		[FRAME_MISSED] = "missed",
		[FRAME_MARK] = "mark",
#define X(id, name, ...) [FRAME_##id] = #name,
		SONDE_RUNTIME_LIST(X, X, SONDE_NO_RUNTIME)
#undef X
	};

	return names[kind];
}

enum frame_kind frame_kind_by_name(const char *name)
{
	uint32_t kind = 0;

	while (kind < FRAME_KIND_COUNT && strcmp(name, frame_kind_name((enum frame_kind)kind)) != 0)
		kind++;
	return (enum frame_kind)kind;
}

const char *value_fold_name(enum value_fold fold)
{
	static const char *const names[] = { [VALUE_SUM] = "sum", [VALUE_MIN] = "min", [VALUE_MAX] = "max" };

	return names[fold];
}

int64_t value_fold(uint32_t fold, int64_t a, int64_t b)
{
	if (fold == VALUE_SUM)
		return number_sum(a, b);
	if (fold == VALUE_MIN && (!a || !b))
		return a ? a : b;
	return (a < b) == (fold == VALUE_MIN) ? a : b;
}

static uint32_t blob_intern(struct profile *profile, struct interned *blobs, const void *bytes, size_t size, size_t nr_closing)
{
	uint64_t hash = hash_bytes(bytes, size, 0);
	uint32_t cursor = 0, *found;
	char *copy;

	while ((found = u64_map_each(&blobs->index, hash, &cursor))) {
		const struct blob *blob = interned_at(blobs, *found);

		if (blob->size == size && !memcmp(blob->bytes, bytes, size))
			return *found;
	}
	copy = arena_alloc(profile->arena, size + nr_closing);
	if (!copy)
		return PROFILE_NONE;
	memcpy(copy, bytes, size);
	memset(copy + size, 0, nr_closing);
	return interned_append(blobs, hash, &(struct blob){ .bytes = copy, .size = size });
}

struct profile *profile_new(void)
{
	CLEANUP(profile_freep) struct profile *profile = calloc(1, sizeof(*profile));
	struct profile_value_type samples;

	if (!profile)
		return NULL;
	profile->strings = profile->stacks = profile->labels = INTERNED_INIT(struct blob, 0, UINT64_MAX); /* compared by their bytes */
	profile->mappings = INTERNED_INIT(struct profile_mapping, sizeof(struct profile_mapping), UINT64_MAX);
	profile->functions = INTERNED_INIT(struct profile_function, sizeof(struct profile_function), UINT64_MAX);
	profile->locations = INTERNED_INIT(struct profile_location, LOCATION_KEY_BYTES, UINT64_MAX);
	profile->samples = INTERNED_INIT(struct profile_sample, SAMPLE_KEY_BYTES, UINT64_MAX);
	profile->histograms = INTERNED_INIT(struct profile_histogram, HISTOGRAM_KEY_BYTES, UINT64_MAX);
	profile->arena = arena_new(MAX_BLOB_BYTES);
	if (!profile->arena || profile_string(profile, "") != PROFILE_EMPTY_STRING || profile_labels(profile, NULL, 0) != PROFILE_NO_LABELS)
		return NULL;
	samples = (struct profile_value_type){ .type = profile_string(profile, "samples"), .unit = profile_string(profile, "count") };
	if (samples.type == PROFILE_NONE || samples.unit == PROFILE_NONE)
		return NULL;
	profile_set_value_types(profile, &samples, 1, 0);
	return MOVE(profile);
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	interned_done(&profile->strings);
	interned_done(&profile->stacks);
	interned_done(&profile->labels);
	interned_done(&profile->mappings);
	interned_done(&profile->functions);
	interned_done(&profile->locations);
	interned_done(&profile->samples);
	interned_done(&profile->histograms);
	arena_free(profile->arena);
	free(profile);
}

void profile_close(struct profile *profile)
{
	interned_close(&profile->strings);
	interned_close(&profile->stacks);
	interned_close(&profile->labels);
	interned_close(&profile->mappings);
	interned_close(&profile->functions);
	interned_close(&profile->locations);
	interned_close(&profile->samples);
	interned_close(&profile->histograms);
}

/* Cuts between characters. */
static uint32_t long_string(struct profile *profile, const char *text)
{
	CLEANUP(freep) char *cut = malloc(PROFILE_TEXT_BYTES + 1);
	size_t size = PROFILE_TEXT_BYTES - strlen(ELLIPSIS);

	if (!cut)
		return PROFILE_NONE;
	for (int i = 1; i < UTF8_MAX_BYTES && (text[size] & 0xc0) == 0x80; i++)
		size--;
	memcpy(cut, text, size);
	memcpy(cut + size, ELLIPSIS, sizeof(ELLIPSIS));
	return blob_intern(profile, &profile->strings, cut, size + strlen(ELLIPSIS), 1);
}

uint32_t profile_string(struct profile *profile, const char *text)
{
	size_t size = strlen(text);

	return size <= PROFILE_TEXT_BYTES ? blob_intern(profile, &profile->strings, text, size, 1) : long_string(profile, text);
}

uint32_t profile_mapping(struct profile *profile, const struct profile_mapping *mapping)
{
	return interned_add(&profile->mappings, mapping);
}

uint32_t profile_function(struct profile *profile, const struct profile_function *function)
{
	return interned_add(&profile->functions, function);
}

uint32_t profile_location(struct profile *profile, const struct profile_location *location)
{
	return interned_add(&profile->locations, location);
}

uint32_t profile_stack(struct profile *profile, const uint32_t *locations, uint32_t nr_locations)
{
	static const uint32_t none;

	return blob_intern(profile, &profile->stacks, nr_locations ? locations : &none, nr_locations * sizeof(*locations), 0);
}

uint32_t profile_labels(struct profile *profile, const struct profile_label *labels, uint32_t nr_labels)
{
	static const struct profile_label none;

	return blob_intern(profile, &profile->labels, nr_labels ? labels : &none, nr_labels * sizeof(*labels), 0);
}

int profile_add(struct profile *profile, const struct profile_sample *sample)
{
	uint32_t nr_before = profile->samples.nr, i = interned_add(&profile->samples, sample);
	struct profile_sample *entry;

	if (i == PROFILE_NONE)
		return -ENOMEM;
	entry = interned_at(&profile->samples, i);
	for (uint32_t value = 0; i != nr_before && value < PROFILE_MAX_VALUES; value++)
		entry->values[value] = value_fold(profile->value_types[value].fold, entry->values[value], sample->values[value]);
	return 0;
}

uint32_t profile_histogram(struct profile *profile, const struct profile_histogram *histogram)
{
	uint32_t nr_before = profile->histograms.nr, i = interned_add(&profile->histograms, histogram);

	if (i != PROFILE_NONE && i != nr_before)
		histogram_merge(&((struct profile_histogram *)interned_at(&profile->histograms, i))->histogram, &histogram->histogram);
	return i;
}

void profile_set_value_types(struct profile *profile, const struct profile_value_type *types, uint32_t nr_types, uint32_t shown)
{
	memcpy(profile->value_types, types, nr_types * sizeof(*types));
	profile->nr_value_types = nr_types;
	profile->shown_value = shown;
}

const char *profile_string_text(const struct profile *profile, uint32_t string)
{
	return ((const struct blob *)interned_at(&profile->strings, string))->bytes;
}

const struct profile_mapping *profile_mapping_at(const struct profile *profile, uint32_t mapping)
{
	return interned_at(&profile->mappings, mapping);
}

const struct profile_function *profile_function_at(const struct profile *profile, uint32_t function)
{
	return interned_at(&profile->functions, function);
}

const struct profile_location *profile_location_at(const struct profile *profile, uint32_t location)
{
	return interned_at(&profile->locations, location);
}

const uint32_t *profile_stack_at(const struct profile *profile, uint32_t stack, uint32_t *ret_nr_locations)
{
	const struct blob *blob = interned_at(&profile->stacks, stack);

	*ret_nr_locations = (uint32_t)(blob->size / sizeof(uint32_t));
	return blob->bytes;
}

uint32_t profile_nr_of_waker(const struct profile *profile, uint32_t stack)
{
	uint32_t nr_locations;
	const uint32_t *locations = profile_stack_at(profile, stack, &nr_locations);

	for (uint32_t i = 1; i < nr_locations; i++) {
		const struct profile_location *at = profile_location_at(profile, locations[i]);

		if (at->kind == FRAME_MARK &&
		    !strcmp(profile_string_text(profile, profile_function_at(profile, at->function)->name), PROFILE_WAKER))
			return i + 1;
	}
	return 0;
}

const struct profile_sample *profile_sample_at(const struct profile *profile, uint32_t sample)
{
	return interned_at(&profile->samples, sample);
}

int64_t *profile_sample_values(struct profile *profile, uint32_t sample)
{
	return ((struct profile_sample *)interned_at(&profile->samples, sample))->values;
}

const struct profile_histogram *profile_histogram_at(const struct profile *profile, uint32_t histogram)
{
	return interned_at(&profile->histograms, histogram);
}

const struct profile_label *profile_labels_at(const struct profile *profile, uint32_t labels, uint32_t *ret_nr_labels)
{
	const struct blob *blob = interned_at(&profile->labels, labels);

	*ret_nr_labels = (uint32_t)(blob->size / sizeof(struct profile_label));
	return blob->bytes;
}

const struct profile_value_type *profile_value_types(const struct profile *profile, uint32_t *ret_nr_types)
{
	*ret_nr_types = profile->nr_value_types;
	return profile->value_types;
}

const struct profile_value_type *profile_sum_types(const struct profile *profile, uint32_t *ret_nr_types)
{
	*ret_nr_types = 0;
	while (*ret_nr_types < profile->nr_value_types && profile->value_types[*ret_nr_types].fold == VALUE_SUM)
		++*ret_nr_types;
	return profile->value_types;
}

uint32_t profile_shown_value(const struct profile *profile)
{
	return profile->shown_value;
}

uint32_t profile_shown_fold(const struct profile *profile)
{
	return profile->value_types[profile->shown_value].fold;
}

static bool is_unit_of(const char *unit, const char *name)
{
	static const char *const times[] = { "nanoseconds", "microseconds", "milliseconds", "seconds" };

	if (!strcmp(name, "count"))
		return !strcmp(unit, "count");
	for (size_t i = 0; i < ARRAY_SIZE(times) && !strcmp(name, "time"); i++) {
		if (!strcmp(unit, times[i]))
			return true;
	}
	return false;
}

uint32_t profile_find_value(const struct profile *profile, const char *name)
{
	for (uint32_t i = 0; i < profile->nr_value_types; i++) {
		if (!strcmp(profile_string_text(profile, profile->value_types[i].type), name))
			return i;
	}
	for (uint32_t i = 0; i < profile->nr_value_types; i++) {
		if (profile->value_types[i].fold == VALUE_SUM &&
		    is_unit_of(profile_string_text(profile, profile->value_types[i].unit), name))
			return i;
	}
	return PROFILE_NONE;
}

uint32_t profile_nr_strings(const struct profile *profile)
{
	return profile->strings.nr;
}

uint32_t profile_nr_mappings(const struct profile *profile)
{
	return profile->mappings.nr;
}

uint32_t profile_nr_functions(const struct profile *profile)
{
	return profile->functions.nr;
}

uint32_t profile_nr_locations(const struct profile *profile)
{
	return profile->locations.nr;
}

uint32_t profile_nr_stacks(const struct profile *profile)
{
	return profile->stacks.nr;
}

uint32_t profile_nr_samples(const struct profile *profile)
{
	return profile->samples.nr;
}

uint32_t profile_nr_histograms(const struct profile *profile)
{
	return profile->histograms.nr;
}

struct account *profile_account(struct profile *profile)
{
	return &profile->account;
}

const struct account *profile_account_of(const struct profile *profile)
{
	return &profile->account;
}
