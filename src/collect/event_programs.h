/* SPDX-License-Identifier: Apache-2.0 */
/* event_programs: sends a record with stacks each time a trigger of any kind fires, beside the sampler's own samples. Records arrive
 * through the sampler's ring (abi/event.h). One thread. */
#pragma once
#include "abi/event.h"
#include "abi/probe.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"
#include "collect/trigger.h"

struct event_options { /* borrowed for the call, except the trigger's texts */
	const struct trigger *trigger;
	uint32_t number;  /* written into its records */
	uint32_t syscall; /* SYS_ENTER, SYS_EXIT: this system call alone, or SONDE_EVENT_ANY_SYSCALL */
	const struct sonde_probe_config *probe; /* which hits, and what is sent of them (abi/probe.h); NULL: all, nothing */
};

struct event_programs;
/* Loads the program with the sampler's configuration, targets and maps. Borrows the sampler for its life; the sampler's config.more_levels
 * must cover the programs that may nest on one CPU. Returns as trigger_set_program. */
MUST_CHECK int event_programs_new(struct sampler *sampler, const struct event_options *options, struct diag *diag,
				  struct event_programs **ret_programs);
void event_programs_free(struct event_programs *programs); /* takes NULL; call it before sampler_free */
MUST_CHECK int event_programs_start(struct event_programs *programs, struct diag *diag); /* as trigger_attach */
void event_programs_stop(struct event_programs *programs); /* records in flight still arrive */
void event_programs_counters(const struct event_programs *programs, struct sonde_event_counters *ret_counters); /* summed over the CPUs */
/* Number of times the kernel skipped the program because it was already running on that CPU; 0 before Linux 5.12. */
uint64_t event_programs_nr_left_out(const struct event_programs *programs);
