/* SPDX-License-Identifier: Apache-2.0 */
/* targets: what to count, and where: the pid and cpu of perf_event_open(2), one counter for each pair. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include <sonde/counter.h>

#include "base/cpus.h"
#include "base/diag.h"

#define TARGETS_MAX (1u << 18) /* 32 threads on all of 8,192 CPUs */

struct target {
	int32_t pid; /* a thread; 0: the caller; -1: all; or the cgroup's descriptor */
	int32_t cpu; /* -1: any */
};

struct counter_targets {
	struct target *list;
	uint32_t nr;
	int cgroup_fd;   /* -1: none */
	bool whole;      /* no threads: everything on the CPUs, or the cgroup's part of it */
	bool is_split;   /* threads, with one counter per CPU */
	uint32_t nr_all; /* the number of CPUs, when the targets cover all of them; else 0 */
	bool may_vanish; /* threads of a process, or all CPUs: those that no longer exist are skipped */
};

#define COUNTER_TARGETS_INIT { .cgroup_fd = -1 }
void counter_targets_done(struct counter_targets *targets);
/* `per_cpu`: one counter for each CPU, also for threads. 0; -EINVAL: options exclude each other; -ESRCH: no such process; errors of
 * cgroup_open. */
MUST_CHECK int counter_targets_fill(struct counter_targets *targets, const struct sonde_counter_options *options, bool per_cpu,
				    struct diag *diag);
