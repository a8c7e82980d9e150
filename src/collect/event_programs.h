/* SPDX-License-Identifier: Apache-2.0 */
/* event_programs: a record with stacks for each time that a trigger strikes, of any kind, beside the sampler's. Records come through the
 * sampler's ring (abi/event.h). One thread. */
#pragma once
#include "abi/event.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "collect/sampler.h"
#include "collect/trigger.h"

struct event_options { /* borrowed for the call but for the trigger's texts */
	const struct trigger *trigger;
	uint32_t number;  /* that its records have */
	uint32_t syscall; /* SYS_ENTER and SYS_EXIT: at this one alone, or SONDE_EVENT_ANY_SYSCALL */
};

struct event_programs;
/* Loads the program, with the sampler's knobs, targets and maps; borrows the sampler, which has config.more_levels for those that may meet
 * on a CPU, for its life. 0 or as trigger_set_program. */
MUST_CHECK int event_programs_new(struct sampler *sampler, const struct event_options *options, struct diag *diag,
				  struct event_programs **ret_programs);
void event_programs_free(struct event_programs *programs); /* takes NULL; before the sampler's */
MUST_CHECK int event_programs_start(struct event_programs *programs, struct diag *diag); /* as trigger_attach */
void event_programs_stop(struct event_programs *programs); /* what is under way still comes */
void event_programs_counters(const struct event_programs *programs, struct sonde_event_counters *ret_counters); /* summed over the CPUs */
/* Times that the kernel itself left the program out, as it was at work on that CPU already; 0 before Linux 5.12. */
uint64_t event_programs_nr_left_out(const struct event_programs *programs);
