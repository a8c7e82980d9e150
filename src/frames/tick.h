/* SPDX-License-Identifier: Apache-2.0 */
/* tick: what a sample's values stand for, in units that other programs know. */
#pragma once
#include "model/profile.h"

/* How much of its event one sample stands for; 0: only the kernel knew, or the values are not samples. */
uint64_t tick_period(const struct profile *profile);
/* The event's name in pprof and similar formats: "cpu" for the clocks. */
const char *tick_event(const struct account *account);
/* count * period, saturated at the limits of the type. */
int64_t tick_value(int64_t count, uint64_t period);

struct value_scale {
	const char *unit; /* "nanoseconds" for all times, else as in the profile: "count", "bytes" */
	uint64_t factor;  /* from the sample's value to this unit */
	bool is_time;
};

/* The scale of a value. Samples of a clock count as the time they stand for. */
struct value_scale value_scale_of(const struct profile *profile, uint32_t type);
