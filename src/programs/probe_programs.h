/* SPDX-License-Identifier: Apache-2.0 */
/* probe_programs: the kernel side of `trace` at one trigger (bpf/probe.bpf.c): hits counted by fields, times, single hits. One thread. */
#pragma once
#include <stdint.h>

#include "abi/config.h"
#include "abi/probe.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/map_read.h"
#include "collect/trigger.h"

struct probe_programs_options { /* borrowed for the call, except the trigger's texts */
	const struct trigger *trigger;
	struct sonde_config config; /* the filters; the other fields are filled in */
	struct sonde_probe_config probe;
	uint32_t number;	 /* written into its records */
	const uint32_t *targets; /* tgids or tids, by config.filter_tgid or filter_tid */
	uint32_t nr_targets;
	struct probe_programs *begin; /* for the end of a time: the programs of its begin; borrowed for the call. NULL: none */
};

struct probe_programs;
/* Loads the program. Returns as trigger_set_program; -EPERM. */
MUST_CHECK int probe_programs_new(const struct probe_programs_options *options, struct diag *diag, struct probe_programs **ret_programs);
void probe_programs_free(struct probe_programs *programs);				 /* takes NULL */
MUST_CHECK int probe_programs_start(struct probe_programs *programs, struct diag *diag); /* as trigger_attach */
void probe_programs_stop(struct probe_programs *programs);
typedef int (*probe_record_fn)(void *arg, const struct sonde_probe_record *record);
/* Passes on the records that have arrived. Returns 0 or what fn returned. */
MUST_CHECK int probe_programs_records(struct probe_programs *programs, probe_record_fn fn, void *arg);
/* Calls fn with each struct sonde_probe_key and struct sonde_probe_sum; the programs have stopped. 0, -errno, or what fn returned. */
MUST_CHECK int probe_programs_sums(struct probe_programs *programs, map_element_fn fn, void *arg);
/* As event_programs_nr_left_out. */
uint64_t probe_programs_nr_left_out(const struct probe_programs *programs);
void probe_programs_counters(const struct probe_programs *programs, struct sonde_probe_counters *ret_counters); /* summed over the CPUs */
