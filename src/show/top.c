// SPDX-License-Identifier: Apache-2.0
/* Writes the functions with the most samples: as the innermost frame (self), and anywhere on the stack (total). */
#include <errno.h>

#include "frames/frame_text.h"
#include "frames/functions.h"
#include "show/text_formats.h"

#define MAX_LINES 20

static void write_line(const struct profile *profile, const struct function_row *row, int64_t all, struct buffer *buffer)
{
	char room[FUNCTION_PLACE_BYTES];

	buffer_printf(buffer, "%7.2f %% %7.2f %%  ", 100.0 * (double)row->self / (double)all, 100.0 * (double)row->total / (double)all);
	plain_text(buffer, function_row_name(profile, row), ';');
	buffer_text(buffer, "  ");
	plain_text(buffer, function_row_place(profile, row, room), ';');
	while (buffer->size && buffer->data[buffer->size - 1] == ' ')
		buffer->size--;
	buffer_text(buffer, "\n");
}

int write_top(const struct profile *profile, const struct export_options *options, struct buffer *buffer)
{
	CLEANUP(functions_done) struct functions functions = { 0 };
	CLEANUP(freep) const struct function_row **sorted = NULL;
	int err = functions_tally(profile, profile_shown_value(profile), &functions);

	if (err)
		return err;
	sorted = functions_sorted(&functions, false);
	if (!sorted)
		return -ENOMEM;
	if (functions.all)
		buffer_text(buffer, "     SELF     TOTAL  FUNCTION\n");
	for (uint32_t i = 0; functions.all && i < functions.nr && i < MAX_LINES && sorted[i]->self; i++)
		write_line(profile, sorted[i], functions.all, buffer);
	return 0;
}
