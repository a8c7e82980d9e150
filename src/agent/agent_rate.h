/* SPDX-License-Identifier: Apache-2.0 */
/* agent_rate: keeps the agent's cost below --max-cpu: chooses the rate of sampling by what the agent costs. Knows neither clock nor
 * session. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define RATE_QUIET 3 /* so many windows in a row must leave room before the rate rises again */

struct agent_rate { /* zeros, except for the first two */
	uint32_t max_percent;    /* of the machine's time; 0: no limit */
	uint64_t wanted_hz;
	uint64_t hz;             /* 0: as wanted */
	bool is_settling;        /* the rate was changed a window ago: the cost is that of both */
	bool is_at_end;          /* it costs too much at 1 Hertz */
	uint32_t nr_quiet;
};

/* After each window, with what the agent cost meanwhile, in percent. True: the rate has changed, or `is_at_end` has become true. */
bool agent_rate_look(struct agent_rate *rate, double percent);
