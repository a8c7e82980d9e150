/* SPDX-License-Identifier: Apache-2.0 */
/* tick: what a sample's values stand for, in the units that other programs know. */
#pragma once
#include "model/profile.h"

/* How much of its event one sample stands for; 0: only the kernel knew, or the values are no samples. */
uint64_t tick_period(const struct profile *profile);
/* The event as pprof and its kin call it: "cpu" for the clocks. */
const char *tick_event(const struct account *account);
/* count * period; what is more than the type holds is its limit. */
int64_t tick_value(int64_t count, uint64_t period);

struct value_scale {
	const char *unit; /* "nanoseconds" for all times, else as the profile has it: "count", "bytes" */
	uint64_t factor;  /* from the sample's value to this unit */
	bool is_time;
};

/* Samples of a clock are given as the time that they stand for. */
struct value_scale value_scale_of(const struct profile *profile, uint32_t type);
