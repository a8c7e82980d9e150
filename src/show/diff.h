/* SPDX-License-Identifier: Apache-2.0 */
/* diff: two profiles as one, with the values "before" and "after". Stacks are matched by the names of their processes and functions, as two
 * builds have other addresses; what differs between runs (pids, CPUs, times, labels) is left out. */
#pragma once
#include "model/profile.h"
#include "show/diff_histogram.h"
#include "show/show.h"

struct diff_row {           /* a function; in raw values: [0] before, [1] after */
	uint32_t name, path, kind; /* of the new profile: strings, enum frame_kind */
	uint32_t start_line;       /* as in struct function_row; lines move between two versions: of the first that came */
	int64_t self[2], total[2];
};

struct diff {
	struct profile *profile; /* both values with the same total, that of the greater; "after" is shown */
	struct diff_row *rows;   /* the greatest change of self share first, then of total */
	uint32_t nr_rows;
	int64_t all[2];          /* raw totals */
	double units_per_sample[2]; /* of the value that is compared; 0: how many samples there were is not known */
	char type[64], unit[64]; /* of the value */
	struct diff_histogram
	    *histograms; /* of both; where one of the profiles has no samples, that is all, and `all` and rows are empty */
	uint32_t nr_histograms;
};

/* `value`: the type of the values to compare; NULL: what `after` shows. 0; -ENODATA: one of them has no such values, or they sum up to
 * nothing, and they have no histograms; -EINVAL: the units differ; -ENOMEM. */
MUST_CHECK int diff_make(const struct profile *before, const struct profile *after, const char *value, struct diag *diag,
			 struct diff *ret_diff);
void diff_done(struct diff *diff); /* all zero is done */
/* Is it a profile made here, or like one: exactly two values, "before" and "after"? */
bool diff_is(const struct profile *profile);
/* Can a format of that name hold both values? */
bool diff_format_carries(const char *format);
/* Is it known how many samples the values stand for? */
bool diff_has_counts(const struct diff *diff);
/* Is a difference of shares within two standard deviations of what chance makes of counts? Only where there are counts. */
bool diff_is_noise(const struct diff *diff, const int64_t values[2]);
/* The change per function. 0; the buffer has its own error. */
void show_diff(const struct diff *diff, const struct show_options *options, struct buffer *buffer);
