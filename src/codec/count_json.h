/* SPDX-License-Identifier: Apache-2.0 */
/* count_json: what was counted as one JSON object: one text for sonde stat and libsonde. Its fields: docs/formats.md. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

struct count_json_event {
	const char *name, *json_name; /* the second NULL: it has none in perf-utils' JSON */
	const char *error;            /* why there is no value; NULL: there is */
	uint64_t value, enabled_ns, running_ns;
	bool is_scaled, is_user_only;
	uint32_t nr_runs;             /* in which it was counted, where a value is a mean; 0: it is none */
	double deviation_percent;     /* then */
};

struct count_json {
	const struct count_json_event *events;
	uint32_t nr;
	uint32_t nr_runs;     /* of which the values are means; 1: they are none */
	bool is_interval;     /* one of several, a line each */
	uint64_t at_ns;       /* its end, since the start */
	uint64_t duration_ns; /* 0: not known */
};

void count_json(const struct count_json *counts, struct buffer *buffer);
/* Why a counter that could be had has no value, in words; NULL: it has one. `err`: a negative errno, or 0. */
const char *count_absence(int err, uint64_t enabled_ns, uint64_t running_ns);
