// SPDX-License-Identifier: Apache-2.0
/* Writes the layout of BCC's memleak: the stacks that hold, or have allocated, the most memory, the largest last. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frames/frame_source.h"
#include "frames/frame_text.h"
#include "show/fold.h"
#include "show/histogram_text.h"
#include "show/source_lines.h"
#include "show/text_formats.h"

static bool has_types(const struct profile *profile, const char *const *names, uint32_t nr_names)
{
	uint32_t nr;
	const struct profile_value_type *types = profile_value_types(profile, &nr);

	for (uint32_t i = 0; i < nr_names; i++) {
		if (i >= nr || strcmp(profile_string_text(profile, types[i].type), names[i]) != 0)
			return false;
	}
	return true;
}

/* All that was allocated, and what of it is outstanding. */
static bool is_allocated(const struct profile *profile)
{
	static const char *const names[] = { "alloc_objects", "alloc_space", "inuse_objects", "inuse_space" };

	return has_types(profile, names, ARRAY_SIZE(names));
}

/* Of what was allocated nothing else is known. */
static bool is_estimated(const struct profile *profile)
{
	static const char *const names[] = { "alloc_objects", "alloc_space" };

	return has_types(profile, names, ARRAY_SIZE(names)) && !is_allocated(profile);
}

/* Growth of resident memory. */
static bool is_resident(const struct profile *profile)
{
	static const char *const names[] = { "rss", "rss_anonymous", "rss_huge", "rss_file", "rss_shared", "swap" };

	return has_types(profile, names, ARRAY_SIZE(names));
}

bool text_is_outstanding(const struct profile *profile)
{
	static const char *const names[] = { "inuse_objects", "inuse_space" };

	return has_types(profile, names, ARRAY_SIZE(names)) || is_allocated(profile) || is_estimated(profile) || is_resident(profile);
}

static uint64_t ran_at_s(const struct profile *profile)
{
	return profile_account_of(profile)->start_unix_ns / 1000000000u;
}

/* "main+0x4d [prog] (main.c:12)", and the lines around if asked for. */
static void write_frame(struct buffer *buffer, const struct profile *profile, const struct export_options *options, uint32_t location,
			struct source_lines *sources)
{
	const struct profile_location *at = profile_location_at(profile, location);
	const char *file = profile_string_text(profile, profile_function_at(profile, at->function)->file);

	buffer_text(buffer, "\t\t");
	frame_text(buffer, profile, location, options, ';');
	if (at->mapping != PROFILE_NONE) {
		buffer_text(buffer, " [");
		plain_text(buffer, path_base(profile_string_text(profile, profile_mapping_at(profile, at->mapping)->path)), ';');
		buffer_text(buffer, "]");
	}
	if (at->kind == FRAME_NATIVE && *file && at->line) {
		buffer_text(buffer, " (");
		plain_text(buffer, path_base(file), ';');
		buffer_printf(buffer, ":%" PRIu32 ")", at->line);
	}
	buffer_text(buffer, "\n");
	if (options->source_lines && *file && at->line)
		source_lines_write(sources, file, at->line, options->source_lines, ran_at_s(profile), "\t\t\t", buffer);
	buffer_settle(buffer);
}

static void write_stack(struct buffer *buffer, const struct profile *profile, const struct export_options *options, uint32_t stack,
			struct source_lines *sources)
{
	uint32_t nr = 0;

	if (stack != PROFILE_NONE)
		profile_stack_at(profile, stack, &nr);
	for (uint32_t i = 0; i < nr; i++)
		write_frame(buffer, profile, options, profile_stack_at(profile, stack, &nr)[i], sources);
}

/* "3145728 bytes: 1048576 anonymous, 2097152 in huge pages, in prog (185)" */
static void write_growth(struct buffer *buffer, const struct profile *profile, const struct fold_entry *entry)
{
	static const char *const kinds[] = { "anonymous", "in huge pages", "of files", "shared", "swapped out" };
	const char *between = ":";

	buffer_printf(buffer, "\t%" PRId64 " bytes", entry->values[0]);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!entry->values[i + 1])
			continue;
		buffer_printf(buffer, "%s %" PRId64 " %s", between, entry->values[i + 1], kinds[i]);
		between = ",";
	}
	buffer_text(buffer, ", in ");
	plain_text(buffer, profile_string_text(profile, entry->comm), ';');
	buffer_printf(buffer, " (%" PRIu32 ")", entry->tgid);
}

static int write_entry(struct buffer *buffer, const struct profile *profile, const struct export_options *options,
		       const struct fold *fold, const struct fold_entry *entry, struct source_lines *sources)
{
	if (is_resident(profile))
		write_growth(buffer, profile, entry);
	else
		buffer_printf(buffer, "\t%s%" PRId64 " bytes in %" PRId64 " allocations", is_estimated(profile) ? "about " : "",
			      entry->values[1], entry->values[0]);
	if (is_allocated(profile))
		buffer_printf(buffer, ", %" PRId64 " bytes in %" PRId64 " not freed,", entry->values[3], entry->values[2]);
	buffer_text(buffer, " from stack\n");
	write_stack(buffer, profile, options, entry->kernel_stack, sources);
	write_stack(buffer, profile, options, entry->user_stack, sources);
	return fold_print_histograms(buffer, profile, fold, entry);
}

#define MAX_SUSPECTS 10

static uint32_t leaf_stack(const struct fold_entry *entry)
{
	return entry->kernel_stack != PROFILE_NONE ? entry->kernel_stack : entry->user_stack;
}

static int compare_growth(const void *left, const void *right)
{
	const struct fold_entry *const *a = left, *const *b = right;

	return (*a)->values[2] > (*b)->values[2] ? -1 : (*a)->values[2] < (*b)->values[2];
}

/* The stacks that grow steadily, by their rates: each with its innermost frame alone, as its stack is among the others. */
static int write_suspects(struct buffer *buffer, const struct profile *profile, const struct export_options *options,
			  const struct fold *fold)
{
	CLEANUP(freep) const struct fold_entry **list = calloc(fold->nr_entries + 1, sizeof(*list));
	struct export_options without_source = *options;
	uint32_t nr = 0, nr_frames;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < fold->nr_entries; i++) {
		if (fold->entries[i].values[2] > 0 && leaf_stack(&fold->entries[i]) != PROFILE_NONE)
			list[nr++] = &fold->entries[i];
	}
	without_source.source_lines = 0;
	qsort(list, nr, sizeof(*list), compare_growth);
	if (nr)
		buffer_text(buffer, "Suspects, which grow steadily:\n");
	for (uint32_t i = 0; i < nr && i < MAX_SUSPECTS; i++) {
		buffer_printf(buffer, "\t%.1f bytes/s:", (double)list[i]->values[2] / 3600);
		write_frame(buffer, profile, &without_source, profile_stack_at(profile, leaf_stack(list[i]), &nr_frames)[0], NULL);
	}
	return 0;
}

/* "addr = 7fd7b9c73690 size = 8": of the samples that are single blocks. */
static void write_blocks(struct buffer *buffer, const struct profile *profile)
{
	for (uint32_t i = 0; i < profile_nr_samples(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);
		uint32_t nr;
		const struct profile_label *labels = profile_labels_at(profile, sample->labels, &nr);

		if (nr == 1 && labels->is_number && !strcmp(profile_string_text(profile, labels->key), "address"))
			buffer_printf(buffer, "\taddr = %" PRIx64 " size = %" PRId64 "\n", (uint64_t)labels->number, sample->values[1]);
		buffer_settle(buffer);
	}
}

/* When the blocks were read, in local time. */
static void write_time(struct buffer *buffer, const struct profile *profile)
{
	const struct account *account = profile_account_of(profile);
	time_t seconds = (time_t)((account->start_unix_ns + account->duration_ns) / 1000000000u);
	char text[32];
	struct tm tm;

	if (account->start_unix_ns && localtime_r(&seconds, &tm) && strftime(text, sizeof(text), "[%H:%M:%S] ", &tm))
		buffer_text(buffer, text);
}

static void write_heading(struct buffer *buffer, const struct profile *profile, uint32_t max_stacks)
{
	if (max_stacks)
		buffer_printf(buffer, "Top %" PRIu32 " stacks", max_stacks);
	else
		buffer_text(buffer, "Stacks");
	buffer_text(buffer, is_resident(profile)    ? " by growth of resident memory:\n"
			    : is_allocated(profile) ? " by what they allocated:\n"
			    : is_estimated(profile) ? " by what they allocated, as estimated:\n"
						    : " with outstanding allocations:\n");
}

int write_outstanding(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(fold_done) struct fold fold = { 0 };
	CLEANUP(source_lines_done) struct source_lines sources = { 0 };
	struct export_options shown = *options;
	uint32_t nr;
	int err;

	shown.offsets = true; /* each place of a call is a stack of its own */
	err = fold_profile(profile, &shown, true, &fold);
	if (err)
		return err;
	nr = options->max_stacks && options->max_stacks < fold.nr_entries ? options->max_stacks : fold.nr_entries;
	err = is_allocated(profile) || is_estimated(profile) || is_resident(profile) ? 0 : write_suspects(buffer, profile, &shown, &fold);
	if (err)
		return err;
	write_time(buffer, profile);
	write_heading(buffer, profile, options->max_stacks);
	write_blocks(buffer, profile);
	for (uint32_t i = fold.nr_entries - nr; !err && !buffer->err && i < fold.nr_entries; i++)
		err = write_entry(buffer, profile, &shown, &fold, &fold.entries[i], &sources);
	histogram_print_whole(buffer, profile);
	for (uint32_t i = 0; i < profile_account_of(profile)->nr_notes; i++)
		buffer_printf(buffer, "WARNING: %s\n", profile_account_of(profile)->notes[i]);
	return err;
}
