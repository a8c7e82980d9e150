// SPDX-License-Identifier: Apache-2.0
#include "frames/tick.h"

#include <string.h>

const char *tick_event(const struct account *account)
{
	bool clock = !strcmp(account->event, "cpu-clock") || !strcmp(account->event, "task-clock");

	return clock ? "cpu" : account->event;
}

int64_t tick_value(int64_t count, uint64_t period)
{
	int64_t value;

	return __builtin_mul_overflow(count, period, &value) ? (count < 0 ? INT64_MIN : INT64_MAX) : value;
}

/* With a frequency, only the clocks tick evenly. The period of other events is known to the kernel alone. */
uint64_t tick_period(const struct profile *profile)
{
	const struct account *account = profile_account_of(profile);
	uint32_t nr_types;
	const struct profile_value_type *types = profile_value_types(profile, &nr_types);

	if (nr_types != 1 || strcmp(profile_string_text(profile, types->type), "samples"))
		return 0;
	if (account->period || !account->freq_hz || strcmp(account->event_unit, "nanoseconds"))
		return account->period;
	return 1000000000 / account->freq_hz;
}

struct value_scale value_scale_of(const struct profile *profile, uint32_t type)
{
	static const struct value_scale times[] = {
		{ "nanoseconds", 1, true },
		{ "microseconds", 1000, true },
		{ "milliseconds", 1000000, true },
		{ "seconds", 1000000000, true },
	};
	const struct account *account = profile_account_of(profile);
	uint32_t nr_types;
	const char *unit = profile_string_text(profile, profile_value_types(profile, &nr_types)[type].unit);
	uint64_t period = tick_period(profile);

	if (period && !strcmp(account->event_unit, "nanoseconds"))
		return (struct value_scale){ "nanoseconds", period, true };
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		if (!strcmp(unit, times[i].unit))
			return (struct value_scale){ "nanoseconds", times[i].factor, true };
	}
	return (struct value_scale){ unit, 1, false };
}
