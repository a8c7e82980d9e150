/* SPDX-License-Identifier: Apache-2.0 */
/* runq_programs: the kernel side of `runq` (bpf/runq.bpf.c): histograms of waits for a CPU, of stays on it, or of queue lengths. One
 * thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/config.h"
#include "abi/runq.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"

enum runq_what { RUNQ_WAITS, RUNQ_STAYS, RUNQ_LENGTHS };

struct runq_programs_options { /* borrowed for the call */
	enum runq_what what;
	bool each_cpu;                /* a histogram for each, instead of one */
	struct sonde_config config;   /* the filters; the rest is filled in */
	struct sonde_runq_config runq;
	const uint32_t *targets;      /* tgids or tids, as config.filter_tgid or filter_tid says */
	uint32_t nr_targets;
	uint64_t freq_hz;             /* of lengths */
	uint64_t own_since_ns;	 /* CLOCK_MONOTONIC; with runq.stacks: of processes that we have started since then nothing is counted */
	struct sampler *sampler; /* with runq.stacks: its maps are shared, and the waits come through its ring, as SONDE_RECORD_RUNQSLOWER;
				    borrowed for the programs' life */
};

struct runq_programs;
/* Loads the programs. 0; -EPERM; -EOPNOTSUPP: this kernel cannot (diag says what is missing). */
MUST_CHECK int runq_programs_new(const struct runq_programs_options *options, struct diag *diag, struct runq_programs **ret_programs);
void runq_programs_free(struct runq_programs *programs); /* takes NULL */
MUST_CHECK int runq_programs_start(struct runq_programs *programs, struct diag *diag);
/* As cpu_events_follow, of the ticks of lengths. */
MUST_CHECK int runq_programs_follow_cpus(struct runq_programs *programs, const struct cpus *online, struct diag *diag);
/* Nothing is counted any more when this returns. */
void runq_programs_stop(struct runq_programs *programs);

struct runq_part {
	struct sonde_runq_key key;           /* zero without config.key */
	uint32_t cpu;                        /* with each_cpu */
	enum sonde_runq_length length;       /* of lengths */
	const struct sonde_runq_histogram *histogram;
};
/* A negative result ends the reading. */
typedef int (*runq_part_fn)(void *arg, const struct runq_part *part);
/* What was counted since the last time: each value is told of once. 0, -ENOMEM, what bpf(2) or fn gave. */
MUST_CHECK int runq_programs_take(struct runq_programs *programs, runq_part_fn fn, void *arg);
typedef int (*runq_wait_fn)(void *arg, const struct sonde_runq_record *record);
/* The waits longer than asked for that have come, without runq.stacks. 0 or what fn gave. */
MUST_CHECK int runq_programs_waits(struct runq_programs *programs, runq_wait_fn fn, void *arg);
int runq_programs_wake_fd(const struct runq_programs *programs); /* readable when many have come; borrowed. -1: none come this way */
void runq_programs_counters(const struct runq_programs *programs, struct sonde_runq_counters *ret_counters); /* summed over the CPUs */
