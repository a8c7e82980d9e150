/* SPDX-License-Identifier: Apache-2.0 */
/* profile_merge: adds a profile to another, whole: the windows of a recording become one profile again. */
#pragma once
#include "model/profile.h"

/* Adds samples, histograms and the account of `from`. An empty `to` takes over the types of its values. Equal entries are one. 0; -EINVAL:
 * the types of the values differ; -ENOMEM. After an error `to` is unusable. */
MUST_CHECK int profile_merge(struct profile *to, const struct profile *from);
/* Adds what `more` measured and cost. Counts and durations add up; of sizes at the end of a run the largest is kept. */
void account_merge(struct account *account, const struct account *more);
