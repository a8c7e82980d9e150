/* SPDX-License-Identifier: Apache-2.0 */
/* fold: merges samples whose stacks have the same text. Names are compared, not addresses; with options.offsets both. */
#pragma once
#include "base/buffer.h"
#include "base/cleanup.h"
#include "frames/export_options.h"
#include "model/profile.h"

struct fold_entry {
	uint32_t user_stack, kernel_stack; /* one of those with the same text, or PROFILE_NONE */
	uint32_t comm, tgid, tid;	   /* tgid, tid: 0 unless told apart */
	int64_t values[PROFILE_MAX_VALUES]; /* by profile_value_type */
	uint32_t first_histogram;           /* of its samples, or PROFILE_NONE */
};

struct fold {
	/* Ascending by the value that the profile shows, then by text: the same profile gives the same order, whatever its numbering. */
	struct fold_entry *entries;
	uint32_t nr_entries;
	uint32_t *next_histogram; /* by histogram of the profile: the next one of the same entry, or PROFILE_NONE */
	uint32_t shown;  /* index of the value that the profile shows */
	/* Divides the printed value: nanoseconds of waits, and of all time (`wall`), are printed in microseconds, as offcputime does. */
	int64_t divisor;
};

/* Does the profile have a shortest or a longest beside its sums? */
bool fold_is_of_waits(const struct profile *profile);
/* The number to print for the entry. */
int64_t fold_number(const struct fold *fold, const struct fold_entry *entry);
/* `by_tgid` separates processes with equal names, options.threads separates threads. 0 or -ENOMEM. */
MUST_CHECK int fold_profile(const struct profile *profile, const struct export_options *options, bool by_tgid, struct fold *ret_fold);
/* Writes the histograms of the entry, those of stacks with the same text merged. 0 or -ENOMEM. */
MUST_CHECK int fold_print_histograms(struct buffer *buffer, const struct profile *profile, const struct fold *fold,
				     const struct fold_entry *entry);
void fold_done(struct fold *fold);
/* True if a line belongs between kernel and user frames: both sides exist, are requested, and are not missed. */
bool wants_delimiter(const struct profile *profile, const struct export_options *options, uint32_t user_stack, uint32_t kernel_stack);
