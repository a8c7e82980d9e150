// SPDX-License-Identifier: Apache-2.0
/* counting: the measurement of events by counters. Opens, starts and stops a set (sonde/counter.h) with the session. It has no programs, no
 * stacks and no profile: the caller reads the set at the end of each interval and of the run. */
#include "session/counting.h"

#include <errno.h>

#include "base/clock.h"
#include "base/file_limit.h"
#include "base/sized.h"
#include "engine/measurement.h"
#include "sonde/counter.h"

struct counting {
	struct measurement base;
	struct sonde_counters *set;
	bool is_of_command;         /* counting begins at the command's execve(2) */
	uint32_t nr_intervals;
	uint64_t last_ns;           /* when the interval began */
	uint64_t unix_offset_ns;
};

static struct counting *counting_of(struct measurement *measurement)
{
	return (struct counting *)measurement;
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	const struct sonde_session_options *common = measurement->parts.options;
	struct sonde_counter_options counters;
	int err = sized_options(&counters, sizeof(counters), common->counters, diag);

	if (err)
		return err;
	if (common->comm)
		return diag_errno(diag, EINVAL, "counters take processes, threads and cgroups, not names");
	if (counters.nr_tids || counters.nr_tgids || counters.cgroup)
		return diag_errno(diag, EINVAL, "the session's options say whose events are counted");
	counting_of(measurement)->is_of_command =
	    common->command && !common->nr_tgids && !common->nr_tids && !common->cgroup && !counters.nr_cpus && !counters.all_cpus;
	measurement->needs_engine = measurement->has_stacks = false;
	measurement->takes_whole_command = true;
	return 0;
}

static void done(struct measurement *measurement)
{
	sonde_counters_free(counting_of(measurement)->set);
}

static void say_targets(const struct counting *counting, const uint32_t *command_tgid, struct sonde_counter_options *counters)
{
	const struct sonde_session_options *common = counting->base.parts.options;

	counters->tids = counting->is_of_command ? command_tgid : common->tids;
	counters->nr_tids = counting->is_of_command ? 1 : common->nr_tids;
	counters->tgids = common->tgids;
	counters->nr_tgids = common->nr_tgids;
	counters->cgroup = common->cgroup;
	counters->all_cpus |= !counters->nr_tids && !counters->nr_tgids && !counters->cgroup && !counters->nr_cpus;
	counters->flags |= counting->is_of_command ? SONDE_COUNTER_ON_EXEC : 0;
}

/* Fails only if no counter works; a partly working set is for the caller to report. */
static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	struct counting *counting = counting_of(measurement);
	struct sonde_counter_options counters;
	int err = sized_options(&counters, sizeof(counters), measurement->parts.options->counters, diag);

	if (err)
		return err;
	file_limit_raise();
	say_targets(counting, &command_tgid, &counters);
	err = sonde_counters_new(&counters, &counting->set);
	if (sonde_counters_has_any(counting->set))
		return 0;
	return diag_errno(diag, -err, "%s", sonde_counters_error(counting->set));
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	struct counting *counting = counting_of(measurement);
	int err = counting->is_of_command ? 0 : sonde_counters_start(counting->set);

	*ret_start_ns = counting->last_ns = clock_ns();
	counting->unix_offset_ns = clock_unix_offset_ns();
	return err ? diag_errno(diag, -err, "the counters cannot be started: %s", sonde_counters_error(counting->set)) : 0;
}

static void tell(struct counting *counting, uint64_t end_ns)
{
	const struct sonde_session_options *options = counting->base.parts.options;
	const struct sonde_window window = { .size = sizeof(window),
					     .number = ++counting->nr_intervals,
					     .start_unix_ns = counting->last_ns + counting->unix_offset_ns,
					     .duration_ns = end_ns - counting->last_ns };

	counting->last_ns = end_ns;
	if (options->window)
		options->window(options->arg, &window);
}

/* An interval ends when it is read, not at its border. A border before that time needs no interval of its own. */
static int interval(struct measurement *measurement, uint64_t border_ns)
{
	if (border_ns > counting_of(measurement)->last_ns)
		tell(counting_of(measurement), clock_ns());
	return 0;
}

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	if (sonde_counters_stop(counting_of(measurement)->set))
		account_note(measurement->parts.account, "some counters cannot be stopped: they are a little too high");
	*ret_end_ns = clock_ns();
	return 0;
}

static int finish(struct measurement *measurement, uint64_t start_ns, uint64_t end_ns, struct profile **ret_profile)
{
	tell(counting_of(measurement), end_ns);
	return 0;
}

static uint64_t nr(const struct measurement *measurement)
{
	return sonde_counters_has_any(((const struct counting *)measurement)->set);
}

struct sonde_counters *counting_set(struct measurement *measurement)
{
	return measurement->type == &counting_measurement ? counting_of(measurement)->set : NULL;
}

const struct measurement_type counting_measurement = {
	.bytes = sizeof(struct counting),
	.finds_targets = true,
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.interval = interval,
	.stop = stop,
	.finish = finish,
	.nr = nr,
};
