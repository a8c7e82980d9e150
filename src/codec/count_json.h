/* SPDX-License-Identifier: Apache-2.0 */
/* count_json: counts as one JSON object, the same for sonde stat and libsonde. Its fields: docs/formats.md. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

struct count_json_event {
	const char *name, *json_name; /* json_name NULL: perf-utils' JSON does not have it */
	const char *error;            /* why there is no value; NULL: there is one */
	uint64_t value, enabled_ns, running_ns;
	bool is_scaled, is_user_only;
	uint32_t nr_runs;             /* runs in which it was counted, if the value is a mean; else 0 */
	double deviation_percent;     /* valid if nr_runs is not 0 */
};

struct count_json {
	const struct count_json_event *events;
	uint32_t nr;
	uint32_t nr_runs;     /* number of runs that the values are means of; 1: no means */
	bool is_interval;     /* one of several intervals, one line each */
	uint64_t at_ns;       /* end of the interval, since the start */
	uint64_t duration_ns; /* 0: not known */
};

void count_json(const struct count_json *counts, struct buffer *buffer);
/* Why a counter that was opened has no value, in words; NULL: it has one. `err`: a negative errno, or 0. */
const char *count_absence(int err, uint64_t enabled_ns, uint64_t running_ns);
