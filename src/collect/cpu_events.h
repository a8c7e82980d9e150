/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_events: one perf event on each CPU, which runs a BPF program. Follows CPUs that come online later. Each event has a small ring, in
 * which the kernel reports throttling. One thread. */
#pragma once
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/cpus.h"
#include "base/diag.h"
#include "base/perf_ring.h"

struct cpu_events_options {
	struct perf_event_attr attr; /* `disabled` is always set */
	const char *name;            /* for messages; borrowed for the events' life */
	int64_t cpu;                 /* this CPU alone, or CPU_EVENTS_ALL */
	int program_fd;              /* borrowed for the events' life */
	uint64_t period;             /* counts or nanoseconds per tick; 0: it varies, or is not known */
	bool is_clock;               /* `period` is in nanoseconds, not in counts: a clock's count stops while it is throttled */
};

#define CPU_EVENTS_ALL (-1)

/* Totals over all CPUs, including those that went offline. */
struct cpu_events_total {
	uint64_t count;          /* sum of the events' counts */
	uint64_t expected;       /* ticks due for that count; 0 where the period is 0 */
	uint64_t nr_throttled, throttled_ns; /* throttled by the kernel for too many ticks: how often, how long */
	uint64_t unscheduled_ns; /* the PMU was in use by others */
};

struct cpu_event {
	uint32_t cpu;
	int fd;
	struct perf_ring ring;             /* not mapped if there was no memory for it */
	uint64_t throttled_since_ns;       /* CLOCK_MONOTONIC; 0: not throttled */
	uint64_t settled_ns;               /* of its enabled time, up to the last change of the rate: its ticks are in `gone` */
};

struct cpu_events {
	struct cpu_events_options options;
	struct cpu_event *list; /* owned */
	uint32_t nr, max;
	uint32_t nr_most;       /* open at one time */
	uint32_t nr_late;       /* opened after the others were enabled */
	bool is_enabled;
	struct cpu_events_total gone;
};

/* 0 or -errno; on failure no event stays open. */
MUST_CHECK int cpu_events_open(const struct cpu_events_options *options, struct diag *diag, struct cpu_events *ret_events);
MUST_CHECK int cpu_events_enable(struct cpu_events *events, struct diag *diag);
void cpu_events_disable(struct cpu_events *events);
/* Opens and enables the event on CPUs that are new in `online`, closes it on CPUs that are no longer in it, and reads the rings. Call it
 * every quarter of a second, or more often. 0 or -errno. */
MUST_CHECK int cpu_events_follow(struct cpu_events *events, const struct cpus *online, struct diag *diag);
/* Clocks alone: from now on it ticks at this rate, also on CPUs that come online. 0 or -errno: those before it have the new one. */
MUST_CHECK int cpu_events_set_rate(struct cpu_events *events, uint64_t freq_hz);
struct cpu_events_total cpu_events_total(const struct cpu_events *events);
void cpu_events_close(struct cpu_events *events);
