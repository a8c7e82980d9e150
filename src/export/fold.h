/* SPDX-License-Identifier: Apache-2.0 */
/* fold: samples whose stacks read the same, summed. Names are compared, not addresses; with options.offsets both. */
#pragma once
#include "export/export.h"

struct fold_entry {
	uint32_t user_stack, kernel_stack; /* one of those that read the same, or PROFILE_NONE */
	uint32_t comm, tgid, tid;	   /* tgid, tid: 0 unless told apart */
	int64_t value;  /* of the kind that the profile shows */
	int64_t before; /* of a difference (diff.h): its other value; else 0 */
};

struct fold {
	struct fold_entry *entries; /* ascending by value, then by text: the same profile gives the same order whatever its numbering */
	uint32_t nr_entries;
};

/* `by_tgid` tells processes of equal names apart, options.threads the threads. 0 or -ENOMEM. */
MUST_CHECK int fold_profile(const struct profile *profile, const struct export_options *options, bool by_tgid, struct fold *ret_fold);
void fold_done(struct fold *fold);
