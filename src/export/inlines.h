/* SPDX-License-Identifier: Apache-2.0 */
/* inlines: pprof and its kin have one location for all that was inlined at one address, with a line for each function, the innermost first. It
 * stands under the number of its innermost frame. */
#pragma once
#include "model/profile.h"

struct inlines {
	uint32_t *outer; /* by location: the one that it was inlined into, which is another line of the same location there; PROFILE_NONE */
	bool *is_used;	 /* by location: some stack has it that is not only outer there */
	uint32_t nr_locations;
};

/* 0 or -ENOMEM. */
MUST_CHECK int inlines_find(const struct profile *profile, struct inlines *ret_inlines);
void inlines_done(struct inlines *inlines);
/* Whether the i-th location of a stack begins a location there. */
bool inlines_begins(const struct profile *profile, const uint32_t *locations, uint32_t i);
