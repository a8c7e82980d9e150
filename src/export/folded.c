// SPDX-License-Identifier: Apache-2.0
/* One line per stack, root first: "comm;main;work;-;entry_SYSCALL_64;do_sys_open 12". The pid does not stand there, so processes of
 * equal names are one. */
#include <inttypes.h>
#include <string.h>

#include "export/diff.h"
#include "export/fold.h"
#include "export/formats.h"
#include "export/frame_text.h"

static void write_side(struct buffer *buffer, const struct profile *profile, const struct export_options *options, uint32_t stack)
{
	const uint32_t *locations;
	uint32_t nr_locations;

	if (stack == PROFILE_NONE)
		return;
	locations = profile_stack_at(profile, stack, &nr_locations);
	for (uint32_t i = nr_locations; i-- > 0;) {
		buffer_text(buffer, ";");
		frame_text(buffer, profile, locations[i], options, ':');
	}
}

/* Where nothing stands before the first frame: files of others often have no thread's name. */
static void leave_out_semicolon(struct buffer *buffer, size_t from)
{
	if (buffer->err || buffer->size == from)
		return;
	memmove(buffer->data + from, buffer->data + from + 1, buffer->size - from); /* with the NUL */
	buffer->size--;
}

int write_folded(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(fold_done) struct fold fold = { 0 };
	bool is_diff = diff_is(profile);
	int err = fold_profile(profile, options, false, &fold);

	if (err)
		return err;
	for (uint32_t i = 0; i < fold.nr_entries; i++) {
		const struct fold_entry *entry = &fold.entries[i];
		size_t from;

		plain_text(buffer, profile_string_text(profile, entry->comm), ':');
		from = buffer->size;
		if (options->threads)
			buffer_printf(buffer, ";[tid %" PRIu32 "]", entry->tid);
		write_side(buffer, profile, options, entry->user_stack);
		if (wants_delimiter(profile, options, entry->user_stack, entry->kernel_stack))
			buffer_text(buffer, ";-");
		write_side(buffer, profile, options, entry->kernel_stack);
		if (entry->comm == PROFILE_EMPTY_STRING)
			leave_out_semicolon(buffer, from);
		if (is_diff) /* two columns, as flamegraph.pl reads them */
			buffer_printf(buffer, " %" PRId64, entry->values[0]);
		buffer_printf(buffer, " %" PRId64 "\n", fold_number(&fold, entry));
	}
	return 0;
}
