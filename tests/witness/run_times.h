/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of run_times.bpf.c per CPU, which run_times.c adds up. */
#pragma once
#include <linux/types.h>

#define RUN_TIMES_STEP_NS 50000
#define RUN_TIMES_STEPS 64 /* the last: all longer runs */
#define RUN_TIMES_MAX_CPUS 16 /* whose stolen time is looked at */

enum run_kind { RUN_TICK, RUN_SWITCH, RUN_WAKING, RUN_KINDS };

struct run_times {
	__u64 start_ns, start_stolen_ns; /* of the current run; 0: none */
	__u64 runs;
	__u64 longest_ns;                /* by the clock */
	__u64 longest_own_ns;            /* without the time stolen meanwhile */
	__u64 tgid;                      /* in which that was */
	__u64 by_clock[RUN_TIMES_STEPS];
	__u64 own[RUN_TIMES_STEPS];
};
