/* SPDX-License-Identifier: Apache-2.0 */
/* counter_sets: sets of counters on a made-up kernel, for the tests of counters. Include cmocka.h before it. */
#pragma once
#include <sonde/counter.h>

#include "fake_perf.h"

#define SET(...) (&(struct sonde_counter_options){ .size = sizeof(struct sonde_counter_options), __VA_ARGS__ })

static struct sonde_counters *open_set(const struct sonde_counter_options *options, int want)
{
	struct sonde_counters *set = NULL;
	int err = sonde_counters_new(options, &set);

	if (err != want)
		fail_msg("%d, want %d: %s", err, want, set ? sonde_counters_error(set) : "no set");
	assert_non_null(set);
	return set;
}

static struct sonde_counter_info info_of(const struct sonde_counters *set, uint32_t i)
{
	struct sonde_counter_info info = { .size = sizeof(info) };

	assert_int_equal(sonde_counters_info(set, i, &info), 0);
	return info;
}

static int refuse_hardware(const struct perf_event_attr *attr, int pid, int cpu)
{
	return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ? ENOENT : 0;
}

static void tell(struct fake_event *event, uint64_t value, uint64_t enabled, uint64_t running)
{
	event->value = value;
	event->enabled = enabled;
	event->running = running;
}
