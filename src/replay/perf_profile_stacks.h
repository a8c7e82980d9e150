/* SPDX-License-Identifier: Apache-2.0 */
/* perf_profile_stacks: stores the stacks and samples of a recording, each stack once, without names. At the end it resolves the names and
 * makes a profile. One thread. */
#pragma once
#include <stdbool.h>

#include "base/cleanup.h"
#include "model/profile.h"
#include "naming/resolver.h"

#define PERF_NO_STACK UINT32_MAX

struct perf_stacks;
/* Borrows the processes for its life. NULL: no memory. */
struct perf_stacks *perf_stacks_new(const struct process_table *processes);
void perf_stacks_free(struct perf_stacks *stacks); /* takes NULL */

/* Add a user stack, with frames as in abi/record.h, or a kernel stack. If `nr_walked` is more than nr_frames, frames between the two ends
 * were left out. 0 or -ENOMEM. */
MUST_CHECK int perf_stacks_user(struct perf_stacks *stacks, uint32_t tgid, uint64_t time_ns, const uint64_t *frames, uint32_t nr_frames,
				uint32_t nr_walked, enum sonde_stop stop, uint32_t *ret_stack);
MUST_CHECK int perf_stacks_kernel(struct perf_stacks *stacks, const uint64_t *frames, uint32_t nr_frames, uint32_t *ret_stack);

bool perf_stacks_has_kernel(const struct perf_stacks *stacks); /* are there kernel stacks? */

struct perf_sample { /* has no padding */
	uint64_t time_ns;                /* 0: may be merged with equal ones */
	int64_t values[PROFILE_MAX_VALUES];
	uint32_t user_stack, kernel_stack; /* or PERF_NO_STACK */
	uint32_t tgid, tid, cpu, comm;   /* comm: a string of the profile */
};
MUST_CHECK int perf_stacks_add(struct perf_stacks *stacks, const struct perf_sample *sample);

struct perf_naming {
	struct naming naming;
	bool has_kernel;      /* perf_import_has_kernel */
	uint64_t kernel_base; /* start of the recorded kernel's text; 0: not known */
	uint64_t unix_offset_ns;
};
/* Fills the profile. Call it once. 0 or -ENOMEM. */
MUST_CHECK int perf_stacks_profile(struct perf_stacks *stacks, const struct perf_naming *naming, struct profile *profile);
