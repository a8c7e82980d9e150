/* SPDX-License-Identifier: Apache-2.0 */
/* perf_profile: a recording of `perf record` becomes a profile: its processes are followed as they were, stacks that it holds as memory
 * (--call-graph dwarf) are walked by our own tables, and files on disk give names and lines when they are those that were recorded. One
 * thread. docs/internals/perf-data.md */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "model/profile.h"
#include "perfdata/perf_data.h"

struct perf_profile_options {
	bool lines;      /* also source lines and inlined functions */
	bool timestamps; /* each sample for itself, with its time, or equal ones as one */
};

/* Fills an empty profile. Starts a worker (parse/parser.h), so the program must be one that can be one. 0; as perf_data_open and
 * perf_data_read; as parser_new. */
MUST_CHECK int perf_profile_read(const struct perf_data_source *source, const struct perf_profile_options *options, struct profile *profile,
				 struct diag *diag);
