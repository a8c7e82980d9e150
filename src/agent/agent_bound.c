// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_bound.h"

#define ROOM 0.8 /* of the limit: what is expected after a doubling must be no more than this */

static void set(struct agent_bound *bound, uint64_t to)
{
	bound->now = to;
	bound->is_settling = true;
	bound->is_at_end = false;
	bound->nr_quiet = 0;
}

static bool lower(struct agent_bound *bound)
{
	bool was_at_end = bound->is_at_end;

	if (bound->now > bound->least) {
		set(bound, bound->now / 2 > bound->least ? bound->now / 2 : bound->least);
		return true;
	}
	bound->is_at_end = true;
	bound->nr_quiet = 0;
	return !was_at_end;
}

bool agent_bound_look(struct agent_bound *bound, double cost, double doubled)
{
	if (!bound->limit)
		return false;
	if (bound->is_settling) {
		bound->is_settling = false;
		return false;
	}
	if (cost > bound->limit)
		return lower(bound);
	bound->nr_quiet = doubled < ROOM * bound->limit ? bound->nr_quiet + 1 : 0;
	if (bound->now >= bound->wanted || bound->nr_quiet < BOUND_QUIET)
		return false;
	set(bound, bound->now * 2 < bound->wanted ? bound->now * 2 : bound->wanted);
	return true;
}
