/* SPDX-License-Identifier: Apache-2.0 */
/* diff_histogram: histograms of two profiles side by side. Those of one name, group, unit and scale are one pair; those of stacks are left
 * out, as stacks of two runs differ in what is not shown. */
#pragma once
#include "base/buffer.h"
#include "model/profile.h"

struct diff_histogram {
	uint32_t name, key, unit;       /* strings of the profile that was given for them */
	uint32_t scale;                 /* of both */
	bool has[2];                    /* [0] before, [1] after */
	struct histogram histograms[2];
};

/* Is there one that could be compared? */
bool diff_has_histograms(const struct profile *profile);
/* The caller frees the list; those before come first. `to` gets the strings. 0 or -ENOMEM. */
MUST_CHECK int diff_histograms(const struct profile *before, const struct profile *after, struct profile *to,
			       struct diff_histogram **ret_pairs, uint32_t *ret_nr);
/* Both sides of each, into the profile that has their strings: "before" and "after" are their groups. 0 or -ENOMEM. */
MUST_CHECK int diff_keep_histograms(struct profile *profile, const struct diff_histogram *pairs, uint32_t nr);
/* Counts of each range before and after, what most of them are below, and what became of the tail. */
void show_diff_histogram(const struct diff_histogram *pair, const struct profile *profile, struct buffer *buffer);
