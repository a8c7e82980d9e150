// SPDX-License-Identifier: Apache-2.0
#include "settings/agent_measures.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/option.h"

#define MAX_NAME_BYTES 32

static const struct {
	const char *name;
	enum sonde_mode mode;
} measures[MEASURE_COUNT] = {
	[MEASURE_CPU] = { "cpu", SONDE_ON_CPU },
	[MEASURE_OFFCPU] = { "offcpu", SONDE_OFF_CPU },
	[MEASURE_WALL] = { "wall", SONDE_WALL },
};

const char *agent_measure_name(uint32_t measure)
{
	return measure < MEASURE_COUNT ? measures[measure].name : NULL;
}

enum sonde_mode agent_measure_mode(enum agent_measure measure)
{
	return measures[measure].mode;
}

static const char *name_at(const void *names, size_t i)
{
	return agent_measure_name((uint32_t)i);
}

static int parse_one(const char *name, enum agent_measure *ret_measure, struct diag *diag)
{
	const char *nearest;

	for (uint32_t i = 0; i < MEASURE_COUNT; i++) {
		if (!strcmp(name, measures[i].name)) {
			*ret_measure = (enum agent_measure)i;
			return 0;
		}
	}
	nearest = option_nearest(name, name_at, NULL);
	return diag_errno(diag, EINVAL, "measure: there is no '%s'%s%s%s", name, nearest ? ": did you mean " : ": cpu, offcpu and wall",
			  nearest ? nearest : "", nearest ? "?" : "");
}

/* The main one is cpu, or what stands alone. */
static int choose_main(struct agent_measures *chosen, struct diag *diag)
{
	bool has_others = false, has_cpu = false;

	for (uint32_t i = 0; i < chosen->nr_turns; i++) {
		has_others |= chosen->turns[i] != chosen->turns[0];
		has_cpu |= chosen->turns[i] == MEASURE_CPU;
	}
	if (has_others && !has_cpu)
		return diag_errno(diag, EINVAL,
				  "measure: a list of several has cpu in it, which is recorded all the time: cpu,offcpu,wall");
	chosen->main = has_others ? MEASURE_CPU : chosen->turns[0];
	chosen->nr_turns = has_others ? chosen->nr_turns : 0;
	return 0;
}

int agent_measures_parse(const char *list, struct agent_measures *ret_measures, struct diag *diag)
{
	ret_measures->nr_turns = 0;
	for (const char *at = list; at; at = *at ? at + 1 : NULL) {
		size_t size = strcspn(at, ",");
		char name[MAX_NAME_BYTES];
		int err;

		if (ret_measures->nr_turns == MAX_TURNS)
			return diag_errno(diag, EINVAL, "measure: %d windows at most have turns", MAX_TURNS);
		snprintf(name, sizeof(name), "%.*s", (int)size, at);
		err = parse_one(name, &ret_measures->turns[ret_measures->nr_turns++], diag);
		if (err)
			return err;
		at += size;
	}
	return choose_main(ret_measures, diag);
}
