// SPDX-License-Identifier: Apache-2.0
/* The measurement of the stacks at a probe: a sample for each hit. */
#include <errno.h>
#include <string.h>

#include "base/sized.h"
#include "collect/event_programs.h"
#include "engine/measurement.h"
#include "events/events.h"
#include "events/probes.h"

#define MORE_LEVELS 3 /* hits that meet on a CPU, where the program may be preempted: docs/internals/triggers.md */

struct traced_stacks {
	struct measurement base;
	struct probes probes;
	struct event_programs *programs;
	int parse_err; /* the probe cannot be traced; parse_diag says why */
	struct diag parse_diag;
};

static struct traced_stacks *stacks_of(struct measurement *measurement)
{
	return (struct traced_stacks *)measurement;
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	const struct sonde_session_options *common = measurement->parts.options;
	struct traced_stacks *stacks = stacks_of(measurement);
	struct diag *why = &stacks->parse_diag;
	struct sonde_trace_options o;
	int err = sized_options(&o, sizeof(o), common->trace, diag);

	if (err)
		return err;
	if (!o.probes || o.filter || o.by || o.by_arg || o.latency || o.print)
		return diag_errno(diag, EINVAL, "stacks are of all hits of a probe: they have no filter, no times and no lines");
	sampling->config.more_levels = MORE_LEVELS;
	err = probes_parse(o.probes, false, common->nr_tgids == 1 ? common->tgids[0] : 0, why, &stacks->probes);
	if (!err && (stacks->probes.nr > 1 || common->command))
		err = diag_errno(why, EINVAL,
				 stacks->probes.nr > 1 ? "stacks are of one probe at a time"
						       : "trace takes no command: start it, then give its process id");
	if (err == -EINVAL || err == -ENOMEM) {
		*diag = *why;
		return err;
	}
	stacks->parse_err = err;
	return 0;
}

static void done(struct measurement *measurement)
{
	event_programs_free(stacks_of(measurement)->programs);
	probes_done(&stacks_of(measurement)->probes);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	struct traced_stacks *stacks = stacks_of(measurement);
	const struct probe_spec *spec = &stacks->probes.list[0];
	bool is_call = spec->context == SONDE_PROBE_CALL_BEGIN || spec->context == SONDE_PROBE_CALL_END;
	const struct event_options options = { .trigger = &spec->trigger, .syscall = is_call ? spec->call : SONDE_EVENT_ANY_SYSCALL };

	if (stacks->parse_err) {
		*diag = stacks->parse_diag;
		return stacks->parse_err;
	}
	return event_programs_new(measurement->parts.engine->sampler, &options, diag, &stacks->programs);
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	return event_programs_start(stacks_of(measurement)->programs, diag);
}

static int take_record(struct measurement *measurement, const void *record)
{
	const struct sonde_event_record *event = record;

	return stack_recorder_record(measurement->parts.engine->recorder, event->type == SONDE_RECORD_EVENT ? &event->sample : record);
}

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	if (stacks_of(measurement)->programs)
		event_programs_stop(stacks_of(measurement)->programs);
	return 0;
}

static void account(const struct measurement *measurement, struct account *account)
{
	const struct traced_stacks *stacks = (const struct traced_stacks *)measurement;
	struct sonde_event_counters count;

	event_programs_counters(stacks->programs, &count);
	account->ticks = count.hits;
	account->recorded = count.recorded;
	memcpy(account->filtered, count.filtered, sizeof(account->filtered));
	memcpy(account->dropped, count.dropped, sizeof(account->dropped));
	snprintf(account->event, sizeof(account->event), "%s", stacks->probes.list[0].text);
	snprintf(account->event_unit, sizeof(account->event_unit), "count");
}

const struct measurement_type traced_stacks_measurement = {
	.bytes = sizeof(struct traced_stacks),
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.record = take_record,
	.stop = stop,
	.profile = measurement_add_samples,
	.nr = measurement_nr_samples,
	.account = account,
};
