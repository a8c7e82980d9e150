/* SPDX-License-Identifier: Apache-2.0 */
/* timeline: samples one after the other, as wide as what they stand for; where they have their time and are those of a clock, at their
 * time. For formats that have widths and no times. */
#pragma once
#include "frames/tick.h"

struct timeline {
	struct value_scale scale;
	uint64_t first_ns; /* where it begins */
	int64_t at;	   /* the end of the last sample, in units of the scale */
	uint32_t type;	   /* number of the value */
	bool is_timed;
};

struct step {
	int64_t gap;	/* before the sample nothing was seen for so long; 0 for what is only a tick that came a little late */
	int64_t weight; /* of the sample, never negative: a difference has no width */
};

/* Moves on by one sample. */
struct step timeline_step(struct timeline *timeline, const struct profile_sample *sample);
