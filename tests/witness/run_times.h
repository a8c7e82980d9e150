/* SPDX-License-Identifier: Apache-2.0 */
/* What run_times.bpf.c counts of each CPU, and run_times.c adds up. */
#pragma once
#include <linux/types.h>

#define RUN_TIMES_STEP_NS 50000
#define RUN_TIMES_STEPS 64 /* the last: all that took longer */
#define RUN_TIMES_MAX_CPUS 16 /* whose stolen time is looked at */

enum run_kind { RUN_TICK, RUN_SWITCH, RUN_WAKING, RUN_KINDS };

struct run_times {
	__u64 start_ns, start_stolen_ns; /* of the run that is under way; 0: none is */
	__u64 runs;
	__u64 longest_ns;                /* by the clock */
	__u64 longest_own_ns;            /* without what was stolen meanwhile */
	__u64 tgid;                      /* in which that was */
	__u64 by_clock[RUN_TIMES_STEPS];
	__u64 own[RUN_TIMES_STEPS];
};
