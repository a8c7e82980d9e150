// SPDX-License-Identifier: Apache-2.0
/* Writes one line per stack, root first: "comm;main;work;-;entry_SYSCALL_64;do_sys_open 12". The line has no pid, so processes with equal
 * names are one. */
#include <inttypes.h>

#include "frames/frame_text.h"
#include "show/diff.h"
#include "show/fold.h"
#include "show/text_formats.h"

/* No semicolon before the first frame if nothing precedes it: imported files often have no thread name. */
static void separate(struct buffer *buffer, bool *begun)
{
	if (*begun)
		buffer_text(buffer, ";");
	*begun = true;
}

static void write_side(struct buffer *buffer, const struct profile *profile, const struct export_options *options, uint32_t stack,
		       bool *begun)
{
	const uint32_t *locations;
	uint32_t nr_locations;

	if (stack == PROFILE_NONE)
		return;
	locations = profile_stack_at(profile, stack, &nr_locations);
	for (uint32_t i = nr_locations; i-- > 0;) {
		separate(buffer, begun);
		frame_text(buffer, profile, locations[i], options, ':');
		buffer_settle(buffer);
	}
}

static void write_entry(struct buffer *buffer, const struct profile *profile, const struct export_options *options,
			const struct fold_entry *entry)
{
	bool begun = entry->comm != PROFILE_EMPTY_STRING;

	plain_text(buffer, profile_string_text(profile, entry->comm), ':');
	if (options->threads) {
		separate(buffer, &begun);
		buffer_printf(buffer, "[tid %" PRIu32 "]", entry->tid);
	}
	write_side(buffer, profile, options, entry->user_stack, &begun);
	if (wants_delimiter(profile, options, entry->user_stack, entry->kernel_stack)) {
		separate(buffer, &begun);
		buffer_text(buffer, "-");
	}
	write_side(buffer, profile, options, entry->kernel_stack, &begun);
}

int write_folded(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(fold_done) struct fold fold = { 0 };
	bool is_diff = diff_is(profile);
	int err = fold_profile(profile, options, false, &fold);

	if (err)
		return err;
	for (uint32_t i = 0; i < fold.nr_entries && !buffer->err; i++) {
		const struct fold_entry *entry = &fold.entries[i];

		write_entry(buffer, profile, options, entry);
		if (is_diff) /* two columns, for flamegraph.pl */
			buffer_printf(buffer, " %" PRId64, entry->values[0]);
		buffer_printf(buffer, " %" PRId64 "\n", fold_number(&fold, entry));
	}
	return 0;
}
