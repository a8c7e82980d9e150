// SPDX-License-Identifier: Apache-2.0
/* The counts as one JSON object: flat, by perf-utils' names, with all details of each event. */
#include <errno.h>

#include "base/clock.h"
#include "codec/count_json.h"
#include "stat/stat.h"

static struct count_json_event event_of(const struct stat_report *report, const struct stat_event *event)
{
	bool is_mean = report->nr_runs > 1 && stat_is_counted(event);

	return (struct count_json_event){
		.name = event->info.name,
		.json_name = event->info.json_name,
		.error = stat_reason(event),
		.value = (uint64_t)(event->mean + 0.5),
		.enabled_ns = event->count.enabled_ns,
		.running_ns = event->count.running_ns,
		.is_scaled = event->count.scaled,
		.is_user_only = event->info.is_user_only,
		.nr_runs = is_mean ? event->nr_counted : 0,
		.deviation_percent = is_mean ? stat_deviation(event->mean, event->squares, event->nr_counted) : 0,
	};
}

void stat_json(const struct stat_arguments *arguments, const struct stat_report *report, struct buffer *buffer)
{
	CLEANUP(freep) struct count_json_event *events = calloc(report->nr, sizeof(*events));
	const struct count_json counts = {
		.events = events,
		.nr = report->nr,
		.nr_runs = report->nr_runs,
		.is_interval = report->at_s >= 0,
		.at_ns = report->at_s >= 0 ? (uint64_t)(report->at_s * NS_PER_S) : 0,
		.duration_ns = (uint64_t)(report->interval_s * NS_PER_S),
	};

	if (!events) {
		buffer->err = buffer->err ? buffer->err : -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < report->nr; i++)
		events[i] = event_of(report, &report->events[i]);
	count_json(&counts, buffer);
}
