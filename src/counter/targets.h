/* SPDX-License-Identifier: Apache-2.0 */
/* places: whose events are counted, and where: what perf_event_open(2) takes as pid and cpu, one counter each. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include <sonde/counter.h>

#include "base/cpus.h"
#include "base/diag.h"

#define TARGETS_MAX (1u << 18) /* 32 threads on all of 8,192 CPUs */

struct target {
	int32_t pid; /* a thread; 0: the caller; -1: all; the cgroup's descriptor */
	int32_t cpu; /* -1: any */
};

struct counter_targets {
	struct target *list;
	uint32_t nr;
	int cgroup_fd;   /* -1: none */
	bool whole;      /* no threads: all that runs on the CPUs, or the cgroup's part of it */
	bool is_split;   /* threads, on each of some CPUs for itself */
	uint32_t nr_all; /* then on so many, when those are all that there are; else 0 */
	bool may_vanish; /* threads of a process that goes on, CPUs of all: those that are gone are left out */
};

#define COUNTER_TARGETS_INIT { .cgroup_fd = -1 }
void counter_targets_done(struct counter_targets *targets);
/* `per_cpu`: also threads are counted on each CPU for itself. 0; -EINVAL: options that exclude each other; -ESRCH: no such process; what
 * cgroup_open gives. */
MUST_CHECK int counter_targets_fill(struct counter_targets *targets, const struct sonde_counter_options *options, bool per_cpu,
				    struct diag *diag);
