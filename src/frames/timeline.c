// SPDX-License-Identifier: Apache-2.0
#include "frames/timeline.h"

#include "base/number.h"

struct step timeline_step(struct timeline *timeline, const struct profile_sample *sample)
{
	struct step step = { .weight = tick_value(sample->values[timeline->type], timeline->scale.factor) };
	int64_t gap_ns;

	if (step.weight < 0)
		step.weight = 0;
	if (timeline->is_timed && timeline->scale.is_time) {
		if (!__builtin_sub_overflow((int64_t)(sample->time_ns - timeline->first_ns), timeline->at, &gap_ns) &&
		    gap_ns > step.weight / 2)
			step.gap = gap_ns;
	}
	timeline->at = number_sum(number_sum(timeline->at, step.gap), step.weight);
	return step;
}
