/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of perf_profile share: a recording on its way into a profile. */
#pragma once
#include "base/u64_map.h"
#include "replay/perf_profile.h"
#include "replay/perf_profile_files.h"
#include "replay/perf_profile_stacks.h"
#include "replay/perf_profile_walk.h"

/* Processes of a recording have this bit in their number, which no living process has: what /proc, perf maps and roots say of these is not
 * asked. */
#define RECORDED_TGID (1u << 30)

#define PERF_MAX_CHAIN 8192 /* frames; a record has room for as many */

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
	uint64_t frames[PERF_MAX_CHAIN];     /* of the stack under way */
	/* what the values are: by event, or SAMPLES and the event's */
	uint8_t column_of[PERF_DATA_MAX_EVENTS]; /* PROFILE_MAX_VALUES: the event has none */
	uint32_t nr_columns_known;           /* events whose column was chosen */
	bool counts_samples;                 /* one event: the first column counts its samples */
	/* the recorded kernel */
	uint64_t kernel_base;                /* where its text begins; 0: not told */
	bool knows_vdso, has_vdso;           /* is it that of our kernel? */
	/* what was met */
	uint64_t first_ns, last_ns;
	uint64_t nr_lost, nr_lost_samples, nr_throttled, nr_no_column, nr_guest, nr_bad_chain, nr_samples;
	bool has_unwalkable;                 /* stacks of another machine's registers */
};

/* Takes a sample in. 0 or -ENOMEM. */
MUST_CHECK int perf_import_sample(struct perf_import *import, const struct perf_data_record *record);
/* Chooses what the values are, when the events are known. */
MUST_CHECK int perf_import_columns(struct perf_import *import);
/* Is the recorded kernel the one that runs, or was it, before another start? */
bool perf_import_is_same_kernel(struct perf_import *import);
/* And does it stand where it stood, so that its addresses mean the same? *ret_why: why not, in words. */
bool perf_import_has_kernel(struct perf_import *import, const char **ret_why);
/* Fills in the account but for what the samples counted. */
void perf_import_account(struct perf_import *import);
