/* SPDX-License-Identifier: Apache-2.0 */
/* perf_profile: converts a recording of `perf record` to a profile. It replays what the recorded processes did. Stacks recorded as memory
 * (--call-graph dwarf) are walked with our own tables. Files on disk give names and lines if they are the recorded ones. One thread.
 * docs/internals/perf-data.md */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "model/profile.h"
#include "perfdata/perf_data.h"

struct perf_profile_options {
	bool lines;      /* also source lines and inlined functions */
	bool timestamps; /* keep each sample with its time; false: merge equal ones */
};

/* Fills an empty profile. Starts a worker (parse/parser.h), so the program's main must be able to run as one. 0; as perf_data_open,
 * perf_data_read and parser_new. */
MUST_CHECK int perf_profile_read(const struct perf_data_source *source, const struct perf_profile_options *options, struct profile *profile,
				 struct diag *diag);
