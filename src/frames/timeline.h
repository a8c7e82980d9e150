/* SPDX-License-Identifier: Apache-2.0 */
/* timeline: puts samples one after the other, each as wide as what it stands for. Samples of a clock that have times are put at their
 * times. For formats with widths but no times. */
#pragma once
#include "frames/tick.h"

struct timeline {
	struct value_scale scale;
	uint64_t first_ns; /* start of the timeline */
	int64_t at;	   /* the end of the last sample, in units of the scale */
	uint32_t type;	   /* index of the value */
	bool is_timed;
};

struct step {
	int64_t gap;	/* time without samples before this one; 0 if it is only a tick that came slightly late */
	int64_t weight; /* of the sample; never negative, because a difference has no width */
};

/* Advances by one sample. */
struct step timeline_step(struct timeline *timeline, const struct profile_sample *sample);
