/* SPDX-License-Identifier: Apache-2.0 */
/* agent_bound: keeps a cost of the agent below a limit by halving what it follows from: the rate of sampling for --max-cpu, the bound on
 * what it may evict for --max-memory. Knows neither clock nor session. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define BOUND_QUIET 3 /* so many windows in a row must leave room before it is doubled again */

struct agent_bound { /* zeros, except for the first four */
	double limit;            /* of the cost; 0: none */
	uint64_t least, wanted;
	uint64_t now;
	bool is_settling;        /* it was changed a window ago: the cost is that of before, too */
	bool is_at_end;          /* the cost is too high at the least */
	uint32_t nr_quiet;
};

/* After each window, with the cost meanwhile, and what it would become if `now` were doubled. True: `now` has changed, or `is_at_end` has
 * become true. */
bool agent_bound_look(struct agent_bound *bound, double cost, double doubled);
