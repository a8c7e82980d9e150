// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_counters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/counter.h>

#include "cli/output.h"
#include "codec/metrics_text.h"

struct agent_counters {
	struct sonde_counters *set;
	uint32_t nr;
};

static struct sonde_counter_info info_of(const struct agent_counters *counters, uint32_t i)
{
	struct sonde_counter_info info = { .size = sizeof(info) };

	if (sonde_counters_info(counters->set, i, &info))
		info.err = -EINVAL; /* cannot happen */
	return info;
}

static void say_missing(const struct agent_counters *counters)
{
	for (uint32_t i = 0; i < counters->nr; i++) {
		const struct sonde_counter_info info = info_of(counters, i);

		if (info.err)
			output_say("warning: %s is not counted: %s", info.name, info.error);
	}
}

int agent_counters_new(const char *names, struct diag *diag, struct agent_counters **ret_counters)
{
	const struct sonde_counter_options options = {
		.size = sizeof(options), .names = names, .all_cpus = true, .flags = SONDE_COUNTER_ENABLED | SONDE_COUNTER_SCALE
	};
	struct agent_counters *counters = calloc(1, sizeof(*counters));
	int err = counters ? sonde_counters_new(&options, &counters->set) : -ENOMEM;

	if (!counters || err == -ENOMEM) {
		agent_counters_free(counters);
		return -ENOMEM;
	}
	if (!sonde_counters_has_any(counters->set)) {
		diag_errno(diag, EINVAL, "nothing is counted: %s", sonde_counters_error(counters->set));
		agent_counters_free(counters);
		return -EINVAL;
	}
	counters->nr = sonde_counters_nr(counters->set);
	say_missing(counters);
	*ret_counters = counters;
	return 0;
}

void agent_counters_free(struct agent_counters *counters)
{
	if (!counters)
		return;
	sonde_counters_free(counters->set);
	free(counters);
}

/* The caller frees it; NULL: no memory, or there are no counters. What could not be read has an error of its own. */
static struct sonde_count *read_counts(struct agent_counters *counters)
{
	struct sonde_count *counts = counters ? calloc(counters->nr, sizeof(*counts)) : NULL;

	if (counts && sonde_counters_read(counters->set, counts, counters->nr) == -ENOMEM) {
		free(counts);
		return NULL;
	}
	return counts;
}

static bool has_value(const struct sonde_count *count)
{
	return !count->err && (count->running_ns || !count->enabled_ns);
}

void agent_counters_metrics(struct agent_counters *counters, struct buffer *buffer)
{
	CLEANUP(freep) struct sonde_count *counts = read_counts(counters);

	if (!counts)
		return;
	metrics_head(buffer, "sonde_counter_total", "counter",
		     "What --counters counts on all CPUs since the agent began; an estimate where the PMU counts events in turn.");
	for (uint32_t i = 0; i < counters->nr; i++) {
		if (!has_value(&counts[i]))
			continue;
		metrics_label(buffer, "sonde_counter_total{", "event", info_of(counters, i).name);
		buffer_printf(buffer, "} %" PRIu64 "\n", counts[i].value);
	}
}

void agent_counters_text(struct agent_counters *counters, struct buffer *buffer)
{
	CLEANUP(freep) struct sonde_count *counts = read_counts(counters);
	const char *between = "counters: ";

	for (uint32_t i = 0; counts && i < counters->nr; i++) {
		if (!has_value(&counts[i]))
			continue;
		buffer_printf(buffer, "%s%" PRIu64 " %s", between, counts[i].value, info_of(counters, i).name);
		between = ", ";
	}
	if (*between == ',')
		buffer_text(buffer, "\n");
}

void agent_counters_json(struct agent_counters *counters, struct json *json)
{
	CLEANUP(freep) struct sonde_count *counts = read_counts(counters);

	json_key(json, "counters");
	json_open(json, '[');
	for (uint32_t i = 0; counts && i < counters->nr; i++) {
		const struct sonde_counter_info info = info_of(counters, i);

		json_open(json, '{');
		json_key_text(json, "name", info.name);
		json_key_text(json, "unit", info.unit);
		json_key(json, "value");
		if (has_value(&counts[i]))
			json_u64(json, counts[i].value);
		else
			json_null(json);
		json_key_u64(json, "enabled_ns", counts[i].enabled_ns);
		json_key_u64(json, "running_ns", counts[i].running_ns);
		json_key_text(json, "error", info.err ? info.error : counts[i].err ? strerror(-counts[i].err) : "");
		json_close(json, '}');
	}
	json_close(json, ']');
}
