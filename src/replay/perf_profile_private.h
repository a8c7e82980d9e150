/* SPDX-License-Identifier: Apache-2.0 */
/* perf_profile_private: shared by the files of perf_profile: a recording being converted to a profile. */
#pragma once
#include "base/u64_map.h"
#include "replay/perf_profile.h"
#include "replay/perf_profile_files.h"
#include "replay/perf_profile_stacks.h"
#include "replay/perf_profile_walk.h"

/* Set in the process ids of a recording. No living process has this bit in its id, so /proc, perf maps and roots of living processes are
 * never used for recorded ones. */
#define RECORDED_TGID (1u << 30)

#define PERF_MAX_CHAIN 8192 /* frames; as many as fit into a record */

struct perf_import {
	struct perf_profile_options options;
	struct perf_data *data;
	const struct perf_data_info *info;
	struct parser *parser;
	struct proxy *proxy;
	struct process_table *processes;
	struct perf_files *files;
	struct perf_walk *walk;
	struct perf_stacks *stacks;
	struct profile *profile;
	struct account *account;
	struct u64_map comm_by_tid;          /* -> string of the profile */
	uint64_t frames[PERF_MAX_CHAIN];     /* of the current stack */
	/* the columns of values: one per event; if there is one event: its samples, then its values */
	uint8_t column_of[PERF_DATA_MAX_EVENTS]; /* PROFILE_MAX_VALUES: the event has none */
	uint32_t nr_columns_known;           /* number of events with a chosen column */
	bool counts_samples;                 /* one event: the first column counts its samples */
	/* the recorded kernel */
	uint64_t kernel_base;                /* start of its text; 0: not recorded */
	bool knows_vdso, has_vdso;           /* knows_vdso: was it checked? has_vdso: is the vdso our kernel's? */
	/* totals */
	uint64_t first_ns, last_ns;
	uint64_t nr_lost, nr_lost_samples, nr_throttled, nr_no_column, nr_guest, nr_bad_chain, nr_samples;
	bool has_unwalkable;                 /* some stacks lack registers that our machine needs */
};

/* Adds a sample. 0 or -ENOMEM. */
MUST_CHECK int perf_import_sample(struct perf_import *import, const struct perf_data_record *record);
/* Chooses the columns of values, once the events are known. 0 or -ENOMEM. */
MUST_CHECK int perf_import_columns(struct perf_import *import);
/* Is the running kernel the recorded one? It may have been booted again since. */
bool perf_import_is_same_kernel(struct perf_import *import);
/* Is it also at the same address, so that recorded addresses are valid? *ret_why: why not, in words. */
bool perf_import_has_kernel(struct perf_import *import, const char **ret_why);
/* Fills in the account, except for the counts made while adding samples. */
void perf_import_account(struct perf_import *import);
