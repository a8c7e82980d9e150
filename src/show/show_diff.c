// SPDX-License-Identifier: Apache-2.0
/* Writes the change per function. Changes within chance are marked. */
#include <inttypes.h>

#include "frames/functions.h"
#include "show/diff.h"
#include "show/show_text.h"

#define DIFF_LINES 40
#define WIDE_COLUMNS 110

/* Then there is no room for both shares of the total beside names. */
static bool is_narrow(const struct show_options *options)
{
	return options->width && options->width < WIDE_COLUMNS;
}

static void write_side(const struct diff *diff, const int64_t values[2], bool change_alone, const struct show_options *options,
		       struct buffer *buffer)
{
	double before = 100.0 * (double)values[0] / (double)diff->all[0], after = 100.0 * (double)values[1] / (double)diff->all[1];
	bool is_noise = before != after && diff_has_counts(diff) && diff_is_noise(diff, values);
	const char *colour = is_noise || !options->colour ? "" : after > before ? "\033[31m" : "\033[34m";

	if (!change_alone)
		buffer_printf(buffer, "%8.2f %% %7.2f %% ", before, after);
	buffer_printf(buffer, "%s%+8.2f%s%s ", colour, after - before, *colour ? "\033[0m" : "", is_noise ? "~" : " ");
}

static void write_row(const struct diff *diff, const struct diff_row *row, const struct show_options *options, struct buffer *buffer)
{
	const struct function_row function = { .name = row->name, .path = row->path, .kind = row->kind, .start_line = row->start_line };
	size_t from = buffer->size;
	char room[FUNCTION_PLACE_BYTES];

	write_side(diff, row->self, false, options, buffer);
	write_side(diff, row->total, is_narrow(options), options, buffer);
	buffer_text(buffer, " ");
	show_name(buffer, function_row_name(diff->profile, &function));
	show_dim(buffer, options, function_row_place(diff->profile, &function, room));
	show_line_end(buffer, options, from);
}

static void write_totals(const struct diff *diff, const struct show_options *options, struct buffer *buffer)
{
	for (int side = 0; side < 2; side++) {
		size_t from = buffer->size;

		buffer_text(buffer, side ? "after:  " : "before: ");
		show_quantity(buffer, diff->unit, diff->all[side], 0);
		buffer_text(buffer, " of ");
		show_name(buffer, diff->type);
		if (diff->units_per_sample[side] > 0)
			buffer_printf(buffer, " in %.0f samples", (double)diff->all[side] / diff->units_per_sample[side]);
		show_line_end(buffer, options, from);
	}
}

static void show_functions(const struct diff *diff, const struct show_options *options, struct buffer *buffer)
{
	uint32_t max_lines = options->max_lines ? options->max_lines : DIFF_LINES, nr = 0, nr_changed = 0, nr_noise = 0;

	write_totals(diff, options, buffer);
	show_heading(buffer, options,
		     is_narrow(options) ? "     SELF                       TOTAL" : "     SELF                          TOTAL");
	show_heading(buffer, options,
		     is_narrow(options) ? "   BEFORE     AFTER   CHANGE   CHANGE    FUNCTION"
					: "   BEFORE     AFTER   CHANGE     BEFORE     AFTER   CHANGE    FUNCTION");
	for (; nr < diff->nr_rows && nr < max_lines; nr++)
		write_row(diff, &diff->rows[nr], options, buffer);
	if (nr < diff->nr_rows)
		buffer_printf(buffer, "%" PRIu32 " of %" PRIu32 " functions (-n)\n", nr, diff->nr_rows);
	if (!diff_has_counts(diff)) {
		buffer_text(buffer, "shares of each profile's own total; the number of samples behind them is unknown, so changes cannot "
				    "be told from chance\n");
		return;
	}
	for (uint32_t i = 0; i < diff->nr_rows; i++) {
		bool is_noise = diff_is_noise(diff, diff->rows[i].self) && diff_is_noise(diff, diff->rows[i].total);

		nr_noise += is_noise;
		nr_changed += !is_noise;
	}
	buffer_text(buffer,
		    "shares of each profile's own total, changes in points; ~ is within two standard deviations of the noise of counts\n");
	buffer_printf(buffer,
		      "%" PRIu32 " functions changed by more than that, %" PRIu32 " by less; of so many, one in twenty does so by chance\n",
		      nr_changed, nr_noise);
}

void show_diff(const struct diff *diff, const struct show_options *options, struct buffer *buffer)
{
	bool has_functions = diff->all[0] && diff->all[1];

	if (has_functions)
		show_functions(diff, options, buffer);
	for (uint32_t i = 0; i < diff->nr_histograms; i++) {
		buffer_text(buffer, i || has_functions ? "\n" : "");
		show_diff_histogram(&diff->histograms[i], diff->profile, buffer);
	}
}
