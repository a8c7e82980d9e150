/* SPDX-License-Identifier: Apache-2.0 */
/* runq_programs: the kernel side of `runq` (bpf/runq.bpf.c): histograms of waits for a CPU, of time spent on it, or of run queue lengths.
 * One thread. */
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
	bool each_cpu;                /* a histogram per CPU, instead of one for all */
	struct sonde_config config;   /* the filters; the other fields are filled in */
	struct sonde_runq_config runq;
	const uint32_t *targets;      /* tgids or tids, by config.filter_tgid or filter_tid */
	uint32_t nr_targets;
	uint64_t freq_hz;             /* for RUNQ_LENGTHS */
	/* CLOCK_MONOTONIC. With runq.stacks: processes that we have started since then are not counted. */
	uint64_t own_since_ns;
	/* With runq.stacks: the sampler whose maps are shared, and whose ring carries the waits as SONDE_RECORD_RUNQSLOWER. Borrowed for
	 * the programs' life. */
	struct sampler *sampler;
};

struct runq_programs;
/* Loads the programs. 0; -EPERM; -EOPNOTSUPP: this kernel cannot (diag says what is missing). */
MUST_CHECK int runq_programs_new(const struct runq_programs_options *options, struct diag *diag, struct runq_programs **ret_programs);
void runq_programs_free(struct runq_programs *programs); /* takes NULL */
MUST_CHECK int runq_programs_start(struct runq_programs *programs, struct diag *diag);
/* As cpu_events_follow, for the ticks of RUNQ_LENGTHS. */
MUST_CHECK int runq_programs_follow_cpus(struct runq_programs *programs, const struct cpus *online, struct diag *diag);
/* Nothing is counted any more when this returns. */
void runq_programs_stop(struct runq_programs *programs);

struct runq_part {
	struct sonde_runq_key key;           /* zero without runq.key */
	uint32_t cpu;                        /* valid with each_cpu */
	enum sonde_runq_length length;       /* for RUNQ_LENGTHS */
	const struct sonde_runq_histogram *histogram;
};
/* A negative result stops the reading. */
typedef int (*runq_part_fn)(void *arg, const struct runq_part *part);
/* Passes to fn what was counted since the last call; each value is passed once. Returns 0, -ENOMEM, or what bpf(2) or fn returned. */
MUST_CHECK int runq_programs_take(struct runq_programs *programs, runq_part_fn fn, void *arg);
typedef int (*runq_wait_fn)(void *arg, const struct sonde_runq_record *record);
/* Passes to fn the waits that have arrived and were longer than requested (without runq.stacks). Returns 0 or what fn returned. */
MUST_CHECK int runq_programs_waits(struct runq_programs *programs, runq_wait_fn fn, void *arg);
/* Readable when many waits have arrived; borrowed. -1: none arrive this way. */
int runq_programs_wake_fd(const struct runq_programs *programs);
void runq_programs_counters(const struct runq_programs *programs, struct sonde_runq_counters *ret_counters); /* summed over the CPUs */
