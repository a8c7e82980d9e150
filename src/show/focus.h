/* SPDX-License-Identifier: Apache-2.0 */
/* focus: restricts a profile to some of its samples: the others' values become 0. */
#pragma once
#include "base/diag.h"
#include "model/profile.h"

/* Keeps the samples that have a frame whose name matches `focus` (NULL: all), and none whose name matches `ignore` (NULL: none). Both are
 * extended regular expressions (regex(7)). 0; -EINVAL: a pattern is wrong (diag); -ENOMEM. */
MUST_CHECK int focus_samples(struct profile *profile, const char *focus, const char *ignore, struct diag *diag);
