/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_events: one perf event on each CPU, which runs a BPF program; also on CPUs that come later. Beside it a small ring, in which the
 * kernel says when it holds the event back. One thread. */
#pragma once
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/cpus.h"
#include "base/diag.h"
#include "base/perf_ring.h"

struct cpu_events_options {
	struct perf_event_attr attr; /* the events are disabled, whatever it says */
	const char *name;            /* for messages; borrowed for the events' life */
	int64_t cpu;                 /* on this one alone, or CPU_EVENTS_ALL */
	int program_fd;              /* borrowed for the events' life */
	uint64_t period;             /* what a tick stands for; 0: it varies, or is not known */
	bool is_clock;               /* `period` is time, and not what the event counts: that stands still while it is held back */
};

#define CPU_EVENTS_ALL (-1)

/* Of all CPUs together, also of those that are gone. */
struct cpu_events_total {
	uint64_t count;          /* what the events have counted */
	uint64_t expected;       /* so many ticks are due for that; 0 where the period is 0 */
	uint64_t nr_throttled, throttled_ns; /* held back by the kernel, as there were too many of them: how often, how long */
	uint64_t unscheduled_ns; /* others had the PMU */
};

struct cpu_event {
	uint32_t cpu;
	int fd;
	struct perf_ring ring;             /* not mapped: there was no memory for it */
	uint64_t throttled_since_ns;       /* CLOCK_MONOTONIC; 0: it runs */
};

struct cpu_events {
	struct cpu_events_options options;
	struct cpu_event *list; /* owned */
	uint32_t nr, max;
	uint32_t nr_most;       /* at a time */
	uint32_t nr_late;       /* that were opened after the others were enabled */
	bool is_enabled;
	struct cpu_events_total gone;
};

/* 0 or -errno, and then none is open. */
MUST_CHECK int cpu_events_open(const struct cpu_events_options *options, struct diag *diag, struct cpu_events *ret_events);
MUST_CHECK int cpu_events_enable(struct cpu_events *events, struct diag *diag);
void cpu_events_disable(struct cpu_events *events);
/* Opens and enables the event on CPUs that are new in `online`, and closes those of CPUs that are no more in it; takes in what the kernel
 * has said in the rings. Each quarter of a second, or more often. 0 or -errno. */
MUST_CHECK int cpu_events_follow(struct cpu_events *events, const struct cpus *online, struct diag *diag);
struct cpu_events_total cpu_events_total(const struct cpu_events *events);
void cpu_events_close(struct cpu_events *events);
