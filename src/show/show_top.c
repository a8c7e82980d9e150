// SPDX-License-Identifier: Apache-2.0
/* Writes the table of functions, and the summary, which is the default. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/number.h"
#include "frames/functions.h"
#include "model/account_text.h"
#include "show/histogram_text.h"
#include "show/show_table.h"
#include "show/show_text.h"

#define TOP_LINES     40
#define SUMMARY_LINES 20
#define SUMMARY_COMMANDS 10

static void write_row(const struct profile *profile, const struct function_row *row, int64_t all, const struct show_options *options,
		      struct buffer *buffer)
{
	size_t from = buffer->size;
	char room[FUNCTION_PLACE_BYTES];

	show_parts(buffer, profile, options, row->self, &row->total, all);
	show_name(buffer, function_row_name(profile, row));
	show_dim(buffer, options, function_row_place(profile, row, room));
	show_line_end(buffer, options, from);
}

static void write_rest(const struct profile *profile, uint32_t nr_shown, uint32_t nr, int64_t shown, int64_t all, struct buffer *buffer)
{
	if (nr_shown == nr || !all)
		return;
	buffer_printf(buffer, "%" PRIu32 " of %" PRIu32 " functions", nr_shown, nr);
	if (profile_shown_fold(profile) == VALUE_SUM)
		buffer_printf(buffer, ": %.2f %% of all (self)", 100.0 * (double)shown / (double)all);
	buffer_text(buffer, "\n");
}

static int write_functions(const struct profile *profile, const struct functions *functions, uint32_t max_lines,
			   const struct show_options *options, struct buffer *buffer)
{
	CLEANUP(freep) const struct function_row **sorted = functions_sorted(functions, options->sort_total);
	int64_t shown = 0;
	uint32_t nr = 0;

	if (!sorted)
		return -ENOMEM;
	show_parts_heading(buffer, profile, options, "SELF", "TOTAL", "SELF", "FUNCTION");
	for (; nr < functions->nr && nr < max_lines && (sorted[nr]->self || sorted[nr]->total); nr++) {
		write_row(profile, sorted[nr], functions->all, options, buffer);
		shown = number_sum(shown, sorted[nr]->self);
	}
	write_rest(profile, nr, functions->nr, shown, functions->all, buffer);
	return 0;
}

int show_top(const struct profile *profile, const struct show_options *options, struct buffer *buffer)
{
	CLEANUP(functions_done) struct functions functions = { 0 };
	int err = functions_tally(profile, profile_shown_value(profile), &functions);

	if (err)
		return err;
	show_title(buffer, profile, options, functions.all);
	return write_functions(profile, &functions, options->max_lines ? options->max_lines : TOP_LINES, options, buffer);
}

/* Writes the run: what, where, when, and what was lost. */
static void write_run(const struct account *account, const struct show_options *options, struct buffer *buffer)
{
	CLEANUP(buffer_done) struct buffer text = BUFFER_INIT(1 << 20);
	time_t start_s = (time_t)(account->start_unix_ns / NS_PER_S);
	char when[64] = "";
	struct tm utc;

	if (account->start_unix_ns && gmtime_r(&start_s, &utc) && strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &utc)) {
		size_t from = buffer->size;

		buffer_printf(buffer, "taken: %s on ", when);
		show_name(buffer, *account->host ? account->host : "an unnamed host");
		show_dim(buffer, options, account->kernel);
		show_line_end(buffer, options, from);
	}
	account_text_run(account, &text);
	for (char *line = text.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		size_t from = buffer->size;

		*end = '\0';
		show_name(buffer, line); /* it may contain untrusted names */
		show_line_end(buffer, &(struct show_options){ 0 }, from); /* losses are never cut */
	}
}

static int write_samples(const struct profile *profile, const struct show_options *options, struct buffer *buffer)
{
	CLEANUP(functions_done) struct functions functions = { 0 };
	int err = functions_tally(profile, profile_shown_value(profile), &functions);

	if (err)
		return err;
	show_title(buffer, profile, options, functions.all);
	buffer_text(buffer, "\n");
	err = show_groups(profile, SHOW_BY_COMM, &functions, SUMMARY_COMMANDS, options, buffer);
	if (err)
		return err;
	buffer_text(buffer, "\n");
	return write_functions(profile, &functions, options->max_lines ? options->max_lines : SUMMARY_LINES, options, buffer);
}

int show_summary(const struct profile *profile, const struct show_options *options, struct buffer *buffer)
{
	bool has_histograms = profile_nr_histograms(profile), has_samples = profile_nr_samples(profile) || !has_histograms;
	int err;

	write_run(profile_account_of(profile), options, buffer);
	err = has_samples ? write_samples(profile, options, buffer) : 0;
	if (err || !has_histograms)
		return err;
	buffer_text(buffer, "\n");
	histogram_print_whole(buffer, profile);
	return 0;
}
