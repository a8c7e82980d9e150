// SPDX-License-Identifier: Apache-2.0
/* Metrics: what counts mean in relation to each other. */
#include <linux/perf_event.h>
#include <math.h>

#include "base/clock.h"
#include "codec/count_json.h"
#include "stat/stat.h"

#define PERCENT 100.0
#define CACHE_RESULT_SHIFT 16
#define WHAT_FLAGS \
	(SONDE_COUNTER_HYPERVISOR | SONDE_COUNTER_NO_USER | SONDE_COUNTER_NO_KERNEL | SONDE_COUNTER_NO_HOST | SONDE_COUNTER_NO_GUEST | \
	 SONDE_COUNTER_NO_IDLE)

bool stat_is_counted(const struct stat_event *event)
{
	return !event->info.err && !event->count.err && event->count.running_ns;
}

const char *stat_reason(const struct stat_event *event)
{
	return event->info.err ? event->info.error : count_absence(event->count.err, event->count.enabled_ns, event->count.running_ns);
}

/* Updates mean and spread in one pass (Knuth). */
void stat_add_to_mean(double value, uint32_t nr, double *mean, double *squares)
{
	double off = value - *mean;

	*mean += off / nr;
	*squares += off * (value - *mean);
}

/* A run without a turn on the PMU has no value; it does not count as 0. */
void stat_add(struct stat_event *event, const struct sonde_count *count)
{
	event->nr_runs++;
	event->enabled_sum_ns += count->enabled_ns;
	event->running_sum_ns += count->running_ns;
	event->count.enabled_ns = event->enabled_sum_ns / event->nr_runs;
	event->count.running_ns = event->running_sum_ns / event->nr_runs;
	event->count.scaled |= count->scaled;
	event->count.err = event->nr_counted ? 0 : count->err;
	if (count->err || !count->running_ns)
		return;
	event->nr_counted++;
	stat_add_to_mean((double)count->value, event->nr_counted, &event->mean, &event->squares);
}

double stat_deviation(double mean, double squares, uint32_t nr_runs)
{
	return nr_runs > 1 && mean > 0 ? sqrt(squares / (nr_runs - 1) / nr_runs) / mean * PERCENT : 0;
}

/* Finds the event to relate `beside` to. Prefers one of the same group. Both must agree in `flags`. */
static const struct stat_event *find(const struct stat_report *report, const struct stat_event *beside, uint32_t type, uint64_t config,
				     uint64_t flags)
{
	const struct stat_event *found = NULL;

	for (uint32_t i = 0; i < report->nr; i++) {
		const struct stat_event *event = &report->events[i];

		if (event->info.type != type || event->info.config != config || (event->info.flags ^ beside->info.flags) & flags ||
		    !stat_is_counted(event))
			continue;
		if (!found || (event->info.group == beside->info.group && found->info.group != beside->info.group))
			found = event;
	}
	return found;
}

/* Both events must be of the same kind of cores: its PMU's number is in the upper half of config (cpu_core/instructions/). */
static bool share_of(const struct stat_report *report, const struct stat_event *event, uint64_t config, double factor, const char *unit,
		     struct stat_metric *metric)
{
	uint64_t kind = event->info.config & ~(uint64_t)PERF_HW_EVENT_MASK;
	const struct stat_event *whole = find(report, event, event->info.type, kind | config, WHAT_FLAGS);

	if (!whole || !(whole->mean > 0))
		return false;
	*metric = (struct stat_metric){ event->mean / whole->mean * factor, unit };
	return true;
}

/* A clock of the counted threads. It runs in all modes, so flags need not agree. */
static const struct stat_event *find_clock(const struct stat_report *report, const struct stat_event *event)
{
	const struct stat_event *clock = find(report, event, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 0);

	return clock ? clock : find(report, event, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0);
}

static bool rate(const struct stat_report *report, const struct stat_event *event, struct stat_metric *metric)
{
	const struct stat_event *clock = find_clock(report, event);
	double per_s;

	if (!clock || !(clock->mean > 0))
		return false;
	per_s = event->mean / clock->mean * NS_PER_S;
	if (per_s >= 1e9)
		*metric = (struct stat_metric){ per_s / 1e9, "G/sec" };
	else if (per_s >= 1e6)
		*metric = (struct stat_metric){ per_s / 1e6, "M/sec" };
	else if (per_s >= 1e3)
		*metric = (struct stat_metric){ per_s / 1e3, "K/sec" };
	else
		*metric = (struct stat_metric){ per_s, "/sec" };
	return true;
}

static bool of_hardware(const struct stat_report *report, const struct stat_event *event, struct stat_metric *metric)
{
	switch (event->info.config & PERF_HW_EVENT_MASK) {
	case PERF_COUNT_HW_CPU_CYCLES: {
		const struct stat_event *clock = find_clock(report, event);

		if (!clock || !(clock->mean > 0))
			return false;
		*metric = (struct stat_metric){ event->mean / clock->mean, "GHz" }; /* the clock's unit is ns */
		return true;
	}
	case PERF_COUNT_HW_INSTRUCTIONS:
		return share_of(report, event, PERF_COUNT_HW_CPU_CYCLES, 1, "insn per cycle", metric);
	case PERF_COUNT_HW_CACHE_MISSES:
		return share_of(report, event, PERF_COUNT_HW_CACHE_REFERENCES, PERCENT, "% of all cache refs", metric);
	case PERF_COUNT_HW_BRANCH_MISSES:
		return share_of(report, event, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, PERCENT, "% of all branches", metric);
	case PERF_COUNT_HW_STALLED_CYCLES_FRONTEND:
		return share_of(report, event, PERF_COUNT_HW_CPU_CYCLES, PERCENT, "% frontend cycles idle", metric);
	case PERF_COUNT_HW_STALLED_CYCLES_BACKEND:
		return share_of(report, event, PERF_COUNT_HW_CPU_CYCLES, PERCENT, "% backend cycles idle", metric);
	default:
		return rate(report, event, metric);
	}
}

bool stat_metric(const struct stat_report *report, const struct stat_event *event, struct stat_metric *metric)
{
	uint64_t config = event->info.config & PERF_HW_EVENT_MASK;

	if (!stat_is_counted(event))
		return false;
	if (event->info.type == PERF_TYPE_HARDWARE)
		return of_hardware(report, event, metric);
	if (event->info.type == PERF_TYPE_HW_CACHE && config >> CACHE_RESULT_SHIFT == PERF_COUNT_HW_CACHE_RESULT_MISS)
		return share_of(report, event, config & ((1 << CACHE_RESULT_SHIFT) - 1), PERCENT, "% of all accesses", metric);
	if (event->info.type == PERF_TYPE_SOFTWARE && (config == PERF_COUNT_SW_TASK_CLOCK || config == PERF_COUNT_SW_CPU_CLOCK)) {
		*metric = (struct stat_metric){ event->mean / NS_PER_S / report->interval_s, "CPUs utilized" };
		return report->interval_s > 0;
	}
	return !*event->info.unit && rate(report, event, metric);
}
