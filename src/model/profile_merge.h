/* SPDX-License-Identifier: Apache-2.0 */
/* profile_merge: adds a profile to another: whole, as the windows of a recording become one profile again, or a part of it, where it is
 * too large to be sent as one. */
#pragma once
#include "model/profile.h"

/* Adds samples, histograms and the account of `from`. An empty `to` takes over the types of its values. Equal entries are one. 0; -EINVAL:
 * the types of the values differ; -ENOMEM. After an error `to` is unusable. */
MUST_CHECK int profile_merge(struct profile *to, const struct profile *from);
/* Adds the account, and part number `part` of `nr_parts` of the samples and histograms. Each is in one part; the parts are of about the
 * same number, a process's samples are together; part 2n and 2n + 1 of twice as many are the halves of part n. Returns likewise. */
MUST_CHECK int profile_merge_part(struct profile *to, const struct profile *from, uint32_t part, uint32_t nr_parts);
/* A copy in which samples of all times are one. 0 or -ENOMEM. */
MUST_CHECK int profile_without_times(const struct profile *from, struct profile **ret_profile);
/* Adds what `more` measured and cost. Counts and durations add up; of sizes at the end of a run the largest is kept. */
void account_merge(struct account *account, const struct account *more);
