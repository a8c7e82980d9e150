// SPDX-License-Identifier: Apache-2.0
/* The layout of BCC's `profile`, letter for letter. */
#include <inttypes.h>

#include "export/fold.h"
#include "export/formats.h"
#include "export/frame_text.h"

#define COMM_COLUMNS 16

static void write_side(struct buffer *buffer, const struct profile *profile, const struct export_options *options, uint32_t stack)
{
	const uint32_t *locations;
	uint32_t nr_locations;

	if (stack == PROFILE_NONE)
		return;
	locations = profile_stack_at(profile, stack, &nr_locations);
	for (uint32_t i = 0; i < nr_locations; i++) {
		buffer_text(buffer, "    ");
		frame_text(buffer, profile, locations[i], options, ';');
		buffer_text(buffer, "\n");
	}
}

static void write_entry(struct buffer *buffer, const struct profile *profile, const struct export_options *options,
			const struct fold_entry *entry)
{
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
	buffer_printf(buffer, "        %" PRId64 "\n\n", entry->value);
}

int write_text(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(fold_done) struct fold fold = { 0 };
	int err = fold_profile(profile, options, true, &fold);

	if (err)
		return err;
	for (uint32_t i = 0; i < profile_account_of(profile)->nr_notes; i++)
		buffer_printf(buffer, "WARNING: %s\n", profile_account_of(profile)->notes[i]);
	buffer_text(buffer, "\n");
	for (uint32_t i = 0; i < fold.nr_entries; i++)
		write_entry(buffer, profile, options, &fold.entries[i]);
	return 0;
}
