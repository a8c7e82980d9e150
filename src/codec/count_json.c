// SPDX-License-Identifier: Apache-2.0
#include "codec/count_json.h"

#include <string.h>

#include "codec/json.h"

#define VERSION 1

/* An event that occurs twice (cycles:u, cycles:k) has one field under its name. */
static bool is_first(const struct count_json *counts, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++) {
		const struct count_json_event *event = &counts->events[i];

		if (event->json_name && !event->error && !strcmp(event->json_name, counts->events[at].json_name))
			return false;
	}
	return true;
}

/* Adds the fields with perf-utils' names, with the two times. */
static void add_flat(const struct count_json *counts, struct json *json)
{
	const struct count_json_event *first = NULL;

	for (uint32_t i = 0; i < counts->nr; i++) {
		const struct count_json_event *event = &counts->events[i];

		if (event->error)
			continue;
		if (!first)
			first = event;
		if (event->json_name && is_first(counts, i))
			json_key_u64(json, event->json_name, event->value);
	}
	if (!first)
		return;
	json_key_u64(json, "time_enabled", first->enabled_ns);
	json_key_u64(json, "time_running", first->running_ns);
}

static void add_event(const struct count_json *counts, const struct count_json_event *event, struct json *json)
{
	if (!counts->is_interval)
		json_line(json);
	json_open(json, '{');
	json_key_text(json, "name", event->name);
	json_key(json, "value");
	if (event->error)
		json_null(json);
	else
		json_u64(json, event->value);
	json_key_u64(json, "enabled_ns", event->enabled_ns);
	json_key_u64(json, "running_ns", event->running_ns);
	json_key(json, "scaled");
	json_bool(json, event->is_scaled);
	json_key(json, "user_only");
	json_bool(json, event->is_user_only);
	json_key(json, "error");
	if (event->error)
		json_text(json, event->error);
	else
		json_null(json);
	if (event->nr_runs) {
		json_key_u64(json, "nr_runs", event->nr_runs);
		json_key(json, "deviation_percent");
		json_fixed(json, (int64_t)(event->deviation_percent * 1000), 3);
	}
	json_close(json, '}');
}

void count_json(const struct count_json *counts, struct buffer *buffer)
{
	struct json json = { .buffer = buffer };

	json_open(&json, '{');
	json_key_text(&json, "format", "sonde-counts");
	json_key_u64(&json, "version", VERSION);
	add_flat(counts, &json);
	if (counts->is_interval)
		json_key_u64(&json, "at_ns", counts->at_ns);
	if (counts->duration_ns)
		json_key_u64(&json, "duration_ns", counts->duration_ns);
	if (counts->nr_runs > 1)
		json_key_u64(&json, "nr_runs", counts->nr_runs);
	json_key(&json, "events");
	json_open(&json, '[');
	for (uint32_t i = 0; i < counts->nr; i++)
		add_event(counts, &counts->events[i], &json);
	json_close(&json, ']');
	json_close(&json, '}');
	buffer_text(buffer, "\n");
}

const char *count_absence(int err, uint64_t enabled_ns, uint64_t running_ns)
{
	if (err)
		return strerror(-err);
	if (running_ns)
		return NULL;
	return enabled_ns ? "the PMU never had room for it" : "what it is counted for did not run";
}
