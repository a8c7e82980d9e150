// SPDX-License-Identifier: Apache-2.0
/* Writes the layout of BCC's `profile` and `offcputime`, letter for letter. For a stack of waits, its other values follow the number. */
#include <errno.h>
#include <inttypes.h>

#include "frames/frame_text.h"
#include "show/fold.h"
#include "show/histogram_text.h"
#include "show/show_text.h"
#include "show/text_formats.h"

#define COMM_COLUMNS 16

static void write_frame(struct buffer *buffer, const struct profile *profile, const struct export_options *options, uint32_t location)
{
	buffer_text(buffer, "    ");
	frame_text(buffer, profile, location, options, ';');
	buffer_text(buffer, "\n");
	buffer_settle(buffer);
}

/* A waker's stack is stored in the order of a flame graph, with the waker's name as its leaf. Here its own leaf comes first. */
static void write_side(struct buffer *buffer, const struct profile *profile, const struct export_options *options, uint32_t stack)
{
	const uint32_t *locations;
	uint32_t nr_locations, nr_waker;

	if (stack == PROFILE_NONE)
		return;
	locations = profile_stack_at(profile, stack, &nr_locations);
	nr_waker = profile_nr_of_waker(profile, stack);
	if (nr_waker) {
		buffer_printf(buffer, "    %-*s ", COMM_COLUMNS, "waker:");
		frame_text(buffer, profile, locations[0], options, ';');
		buffer_text(buffer, "\n");
	}
	for (uint32_t i = nr_waker ? nr_waker - 1 : 0; i-- > 1;)
		write_frame(buffer, profile, options, locations[i]);
	for (uint32_t i = nr_waker ? nr_waker - 1 : 0; i < nr_locations; i++)
		write_frame(buffer, profile, options, locations[i]);
}

/* Writes the other values of waits after the number: "waits 5, shortest 3.900 ms, longest 4.200 ms". */
static void write_other_values(struct buffer *buffer, const struct profile *profile, const struct fold *fold,
			       const struct fold_entry *entry)
{
	const char *between = "  ";
	uint32_t nr_types;
	const struct profile_value_type *types = profile_value_types(profile, &nr_types);

	for (uint32_t i = 0; i < nr_types; i++) {
		if (i == fold->shown)
			continue;
		buffer_text(buffer, between);
		plain_text(buffer, profile_string_text(profile, types[i].type), ';');
		buffer_text(buffer, " ");
		show_quantity(buffer, profile_string_text(profile, types[i].unit), entry->values[i], 0);
		between = ", ";
	}
}

static int write_entry(struct buffer *buffer, const struct profile *profile, const struct export_options *options, const struct fold *fold,
		       const struct fold_entry *entry)
{
	int err;

	write_side(buffer, profile, options, entry->kernel_stack);
	if (wants_delimiter(profile, options, entry->user_stack, entry->kernel_stack))
		buffer_text(buffer, "    --\n");
	write_side(buffer, profile, options, entry->user_stack);
	buffer_printf(buffer, "    %-*s ", COMM_COLUMNS, "-");
	plain_text(buffer, profile_string_text(profile, entry->comm), ';');
	if (options->threads)
		buffer_printf(buffer, " (%" PRIu32 "/%" PRIu32 ")\n", entry->tgid, entry->tid);
	else
		buffer_printf(buffer, " (%" PRIu32 ")\n", entry->tgid);
	buffer_printf(buffer, "        %" PRId64, fold_number(fold, entry));
	if (fold_is_of_waits(profile))
		write_other_values(buffer, profile, fold, entry);
	buffer_text(buffer, "\n");
	err = fold_print_histograms(buffer, profile, fold, entry);
	buffer_text(buffer, "\n");
	return err;
}

int write_text(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(fold_done) struct fold fold = { 0 };
	struct export_options shown = *options;
	int err;

	if (text_is_outstanding(profile))
		return write_outstanding(profile, options, buffer);
	shown.threads |= shown.of_tids;
	err = fold_profile(profile, &shown, true, &fold);
	if (err)
		return err;
	for (uint32_t i = 0; i < profile_account_of(profile)->nr_notes; i++)
		buffer_printf(buffer, "WARNING: %s\n", profile_account_of(profile)->notes[i]);
	buffer_text(buffer, "\n");
	for (uint32_t i = 0; !err && !buffer->err && i < fold.nr_entries; i++)
		err = write_entry(buffer, profile, &shown, &fold, &fold.entries[i]);
	histogram_print_whole(buffer, profile);
	return err;
}
