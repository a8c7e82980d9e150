/* SPDX-License-Identifier: Apache-2.0 */
/* diff_histogram: histograms of two profiles side by side. Two with the same name, group, unit and scale are a pair. Those of stacks are
 * left out, because the stacks of two runs differ in details that are not shown. */
#pragma once
#include "base/buffer.h"
#include "model/profile.h"

struct diff_histogram {
	uint32_t name, key, unit;       /* strings of the profile passed as `to` */
	uint32_t scale;                 /* of both */
	bool has[2];                    /* [0] before, [1] after */
	struct histogram histograms[2];
};

/* Does the profile have a histogram that can be compared? */
bool diff_has_histograms(const struct profile *profile);
/* Pairs the histograms; those of `before` come first. The caller frees the list. `to` gets the strings. 0 or -ENOMEM. */
MUST_CHECK int diff_histograms(const struct profile *before, const struct profile *after, struct profile *to,
			       struct diff_histogram **ret_pairs, uint32_t *ret_nr);
/* Adds both sides of each pair to the profile that has their strings; "before" and "after" become part of the group. 0 or -ENOMEM. */
MUST_CHECK int diff_keep_histograms(struct profile *profile, const struct diff_histogram *pairs, uint32_t nr);
/* Writes the counts of each range before and after, bounds of most values, and how the tail changed. */
void show_diff_histogram(const struct diff_histogram *pair, const struct profile *profile, struct buffer *buffer);
