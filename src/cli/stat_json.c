// SPDX-License-Identifier: Apache-2.0
/* What was counted as one JSON object: flat, by perf-utils' names, and all about each event. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/stat.h"


static uint64_t mean_of(const struct stat_event *event)
{
	return (uint64_t)(event->mean + 0.5);
}

/* An event that is there twice (cycles:u, cycles:k) stands under its name once. */
static bool is_first(const struct stat_report *report, uint32_t at)
{
	const char *name = report->events[at].info.json_name;

	for (uint32_t i = 0; i < at; i++) {
		if (report->events[i].info.json_name && stat_is_counted(&report->events[i]) && !strcmp(report->events[i].info.json_name, name))
			return false;
	}
	return true;
}

static void add_flat(const struct stat_report *report, struct json *json)
{
	const struct stat_event *first = NULL;

	for (uint32_t i = 0; i < report->nr; i++) {
		const struct stat_event *event = &report->events[i];

		if (!stat_is_counted(event))
			continue;
		if (!first)
			first = event;
		if (event->info.json_name && is_first(report, i))
			json_key_u64(json, event->info.json_name, mean_of(event));
	}
	if (!first)
		return;
	json_key_u64(json, "time_enabled", first->count.enabled_ns);
	json_key_u64(json, "time_running", first->count.running_ns);
}

static void add_event(const struct stat_report *report, const struct stat_event *event, struct json *json)
{
	if (report->at_s < 0) /* an interval is one line */
		json_line(json);
	json_open(json, '{');
	json_key_text(json, "name", event->info.name);
	json_key(json, "value");
	if (stat_is_counted(event))
		json_u64(json, mean_of(event));
	else
		json_null(json);
	json_key_u64(json, "enabled", event->count.enabled_ns);
	json_key_u64(json, "running", event->count.running_ns);
	json_key(json, "scaled");
	json_bool(json, event->count.scaled);
	json_key(json, "error");
	if (stat_is_counted(event))
		json_null(json);
	else
		json_text(json, stat_reason(event));
	if (report->nr_runs > 1 && stat_is_counted(event)) {
		json_key_u64(json, "runs", event->nr_counted);
		json_key(json, "deviation_percent");
		json_fixed(json, (int64_t)(stat_deviation(event->mean, event->squares, event->nr_counted) * 1000), 3);
	}
	json_close(json, '}');
}

void stat_json(const struct stat_arguments *arguments, const struct stat_report *report, struct buffer *buffer)
{
	struct json json = { .buffer = buffer };

	json_open(&json, '{');
	add_flat(report, &json);
	if (report->at_s >= 0)
		json_key_u64(&json, "at_ns", (uint64_t)(report->at_s * NS_PER_S));
	json_key_u64(&json, "elapsed_ns", (uint64_t)(report->interval_s * NS_PER_S));
	if (report->nr_runs > 1)
		json_key_u64(&json, "runs", report->nr_runs);
	json_key(&json, "events");
	json_open(&json, '[');
	for (uint32_t i = 0; i < report->nr; i++)
		add_event(report, &report->events[i], &json);
	json_close(&json, ']');
	json_close(&json, '}');
	buffer_text(buffer, "\n");
}
