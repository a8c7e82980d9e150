// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_rate.h"

#define ROOM 0.8 /* of the limit: twice the rate must be expected to cost no more than this */

static void set(struct agent_rate *rate, uint64_t hz)
{
	rate->hz = hz;
	rate->is_settling = true;
	rate->is_at_end = false;
	rate->nr_quiet = 0;
}

static bool lower(struct agent_rate *rate)
{
	bool was_at_end = rate->is_at_end;

	if (rate->hz > 1) {
		set(rate, rate->hz / 2);
		return true;
	}
	rate->is_at_end = true;
	rate->nr_quiet = 0;
	return !was_at_end;
}

bool agent_rate_look(struct agent_rate *rate, double percent)
{
	if (!rate->max_percent)
		return false;
	if (!rate->hz)
		rate->hz = rate->wanted_hz;
	if (rate->is_settling) {
		rate->is_settling = false;
		return false;
	}
	if (percent > rate->max_percent)
		return lower(rate);
	rate->nr_quiet = 2 * percent < ROOM * rate->max_percent ? rate->nr_quiet + 1 : 0;
	if (rate->hz == rate->wanted_hz || rate->nr_quiet < RATE_QUIET)
		return false;
	set(rate, rate->hz * 2 < rate->wanted_hz ? rate->hz * 2 : rate->wanted_hz);
	return true;
}
