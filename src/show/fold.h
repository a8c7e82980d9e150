/* SPDX-License-Identifier: Apache-2.0 */
/* fold: samples whose stacks read the same, as one. Names are compared, not addresses; with options.offsets both. */
#pragma once
#include "base/cleanup.h"
#include "frames/export_options.h"
#include "model/profile.h"

struct fold_entry {
	uint32_t user_stack, kernel_stack; /* one of those that read the same, or PROFILE_NONE */
	uint32_t comm, tgid, tid;	   /* tgid, tid: 0 unless told apart */
	int64_t values[PROFILE_MAX_VALUES]; /* by profile_value_type */
	uint32_t first_histogram;           /* of those that belong to its samples, or PROFILE_NONE */
};

struct fold {
	struct fold_entry *entries; /* ascending by the value that the profile shows, then by text: the same profile gives the same order
				       whatever its numbering */
	uint32_t nr_entries;
	uint32_t *next_histogram; /* by number of the profile's histograms: another one of the same entry, or PROFILE_NONE */
	uint32_t shown;  /* the number of the value that the profile shows */
	int64_t divisor; /* what is printed of it is divided by that: nanoseconds of waits, and of all time (`wall`), are printed in
			    microseconds, as offcputime does */
};

/* Has the profile a shortest or a longest beside its sums? */
bool fold_is_of_waits(const struct profile *profile);
/* What is printed of the entry. */
int64_t fold_number(const struct fold *fold, const struct fold_entry *entry);
/* `by_tgid` tells processes of equal names apart, options.threads the threads. 0 or -ENOMEM. */
MUST_CHECK int fold_profile(const struct profile *profile, const struct export_options *options, bool by_tgid, struct fold *ret_fold);
void fold_done(struct fold *fold);
/* Between kernel and user frames: both sides are there, asked for, and not missed. */
bool wants_delimiter(const struct profile *profile, const struct export_options *options, uint32_t user_stack, uint32_t kernel_stack);
