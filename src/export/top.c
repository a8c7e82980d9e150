// SPDX-License-Identifier: Apache-2.0
/* The functions with most samples: as the innermost frame (self), and anywhere on the stack (total). */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "export/formats.h"
#include "export/frame_text.h"

#define MAX_LINES 20

struct tally {
	uint32_t function, location; /* a location that has it, for its file and kind */
	uint32_t last_sample;        /* that was counted into total, plus one */
	int64_t self, total;
};

static void count_stack(const struct profile *profile, struct tally *tallies, uint32_t sample, uint32_t stack, bool has_leaf)
{
	int64_t value = profile_sample_at(profile, sample)->values[profile_shown_value(profile)];
	uint32_t nr_locations;
	const uint32_t *locations = profile_stack_at(profile, stack, &nr_locations);

	for (uint32_t i = 0; i < nr_locations; i++) {
		struct tally *tally = &tallies[profile_location_at(profile, locations[i])->function];

		tally->location = locations[i];
		tally->self += has_leaf && i == 0 ? value : 0;
		tally->total += tally->last_sample == sample + 1 ? 0 : value;
		tally->last_sample = sample + 1;
	}
}

static int64_t count_samples(const struct profile *profile, struct tally *tallies)
{
	int64_t total = 0;

	for (uint32_t i = 0; i < profile_nr_functions(profile); i++)
		tallies[i].function = i;
	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);
		uint32_t user = sample->user_stack, kernel = sample->kernel_stack;

		total += sample->values[profile_shown_value(profile)];
		if (kernel != PROFILE_NONE)
			count_stack(profile, tallies, i, kernel, true);
		if (user != PROFILE_NONE)
			count_stack(profile, tallies, i, user, kernel == PROFILE_NONE);
	}
	return total;
}

static int by_self(const void *a, const void *b)
{
	const struct tally *left = a, *right = b;

	if (left->self != right->self)
		return left->self < right->self ? 1 : -1;
	if (left->total != right->total)
		return left->total < right->total ? 1 : -1;
	return left->function < right->function ? -1 : 1;
}

static const char *place_of(const struct profile *profile, const struct profile_location *location)
{
	const char *path, *slash;

	if (location->kind == FRAME_KERNEL)
		return "kernel";
	if (location->mapping == PROFILE_NONE)
		return "";
	path = profile_string_text(profile, profile_mapping_at(profile, location->mapping)->path);
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void write_line(const struct profile *profile, const struct tally *tally, int64_t all, struct buffer *buffer)
{
	const char *name = profile_string_text(profile, profile_function_at(profile, tally->function)->name);

	buffer_printf(buffer, "%7.2f %% %7.2f %%  ", 100.0 * (double)tally->self / (double)all, 100.0 * (double)tally->total / (double)all);
	plain_text(buffer, name, ';');
	buffer_text(buffer, "  ");
	plain_text(buffer, place_of(profile, profile_location_at(profile, tally->location)), ';');
	while (buffer->size && buffer->data[buffer->size - 1] == ' ')
		buffer->size--;
	buffer_text(buffer, "\n");
}

int write_top(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	uint32_t nr = profile_nr_functions(profile);
	CLEANUP(freep) struct tally *tallies = calloc(nr + 1, sizeof(*tallies));
	int64_t all;

	if (!tallies)
		return -ENOMEM;
	all = count_samples(profile, tallies);
	qsort(tallies, nr, sizeof(*tallies), by_self);
	if (all)
		buffer_text(buffer, "     SELF     TOTAL  FUNCTION\n");
	for (uint32_t i = 0; i < nr && i < MAX_LINES && tallies[i].self; i++)
		write_line(profile, &tallies[i], all, buffer);
	return 0;
}
