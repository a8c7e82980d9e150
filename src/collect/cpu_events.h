/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_events: one perf event on each CPU, which runs a BPF program. */
#pragma once
#include <linux/perf_event.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"

struct cpu_events {
	int *fds;    /* owned */
	uint32_t nr; /* CPUs that have it */
};

#define CPU_EVENTS_ALL (-1)

/* The events are disabled whatever `attr` says. `cpu`: on this one alone, or CPU_EVENTS_ALL. `name` is for messages. 0 or -errno, and then none is open. */
MUST_CHECK int cpu_events_open(const struct perf_event_attr *attr, const char *name, int64_t cpu, int program_fd, struct diag *diag, struct cpu_events *ret_events);
MUST_CHECK int cpu_events_enable(const struct cpu_events *events, struct diag *diag);
void cpu_events_disable(const struct cpu_events *events);
/* What all of them have counted. */
uint64_t cpu_events_count(const struct cpu_events *events);
void cpu_events_close(struct cpu_events *events);
