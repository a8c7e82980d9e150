/* SPDX-License-Identifier: Apache-2.0 */
/* diff: two profiles as one, with the values "before" and "after". Stacks are matched by the names of processes and functions, because two
 * builds have different addresses. What differs between runs (pids, CPUs, times, labels) is left out. */
#pragma once
#include "model/profile.h"
#include "show/diff_histogram.h"
#include "show/show.h"

struct diff_row {           /* a function; raw values: [0] before, [1] after */
	uint32_t name, path, kind; /* of the new profile: strings, enum frame_kind */
	/* As in struct function_row, of the first version seen: lines move between two versions. */
	uint32_t start_line;
	int64_t self[2], total[2];
};

struct diff {
	struct profile *profile; /* both values are scaled to the larger total; "after" is shown */
	struct diff_row *rows;   /* sorted by change of the self share, then of the total share, largest first */
	uint32_t nr_rows;
	int64_t all[2];          /* raw totals */
	double units_per_sample[2]; /* of the compared value; 0: the number of samples is not known */
	char type[64], unit[64]; /* of the compared value */
	/* Of both profiles. If one of them has no samples, there is nothing else: `all` and rows are empty. */
	struct diff_histogram *histograms;
	uint32_t nr_histograms;
};

/* `value`: the type of the values to compare; NULL: the one that `after` shows. 0; -ENODATA: a profile has no such values, or their sum is
 * not positive, and there are no histograms to compare instead; -EINVAL: the units differ, or the value is not a sum; -ENOMEM. */
MUST_CHECK int diff_make(const struct profile *before, const struct profile *after, const char *value, struct diag *diag,
			 struct diff *ret_diff);
void diff_done(struct diff *diff); /* accepts an all-zero struct */
/* True for a profile made here or like one: exactly two values, "before" and "after". */
bool diff_is(const struct profile *profile);
/* Can the format of that name hold both values? */
bool diff_format_carries(const char *format);
/* Is the number of samples behind the values known? */
bool diff_has_counts(const struct diff *diff);
/* Is a difference of shares within two standard deviations of chance? Only valid if diff_has_counts. */
bool diff_is_noise(const struct diff *diff, const int64_t values[2]);
/* Writes the change per function. The buffer records errors. */
void show_diff(const struct diff *diff, const struct show_options *options, struct buffer *buffer);
