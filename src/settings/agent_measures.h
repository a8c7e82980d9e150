/* SPDX-License-Identifier: Apache-2.0 */
/* agent_measures: what the agent measures, window by window. One kind is the main one: it is recorded all the time, without a gap. Others
 * are recorded beside it when their turn comes (agent_turns.h). */
#pragma once
#include <stdint.h>

#include <sonde/sonde.h>

#include "base/cleanup.h"
#include "base/diag.h"

enum agent_measure { MEASURE_CPU, MEASURE_OFFCPU, MEASURE_WALL, MEASURE_COUNT };

#define MAX_TURNS 64

struct agent_measures {
	enum agent_measure main;
	enum agent_measure turns[MAX_TURNS]; /* a window each, round and round */
	uint32_t nr_turns;                   /* 0: the main one alone */
};

const char *agent_measure_name(uint32_t measure); /* as the store has it; NULL ends. Lives for ever */
enum sonde_mode agent_measure_mode(enum agent_measure measure);
/* "cpu,cpu,offcpu". 0; -EINVAL with a line. */
MUST_CHECK int agent_measures_parse(const char *list, struct agent_measures *ret_measures, struct diag *diag);
