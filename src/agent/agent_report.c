// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/process_stat.h"

#define STORE_AGE_NS NS_PER_S
#define MAX_LATE     3 /* windows */

/* --- the store ------------------------------------------------------------------------------------------------------------------------ */

static int read_store(struct store *store, const struct agent_sources *sources, struct store_report *report)
{
	int err = store_size(store, NULL, &report->nr_rows, &report->nr_bytes);

	for (uint32_t i = 0; !err && i < sources->nr_deliveries; i++) {
		const char *name = delivery_name(sources->deliveries[i]);

		err = store_waiting(store, name, NULL, &report->nr_waiting[i]) ?: store_evicted(store, name, NULL, &report->nr_evicted[i]);
	}
	return err;
}

static void refresh_store(const struct agent_sources *sources, uint32_t window, struct store_report *report)
{
	CLEANUP(store_closep) struct store *store = NULL;
	struct store_report fresh = { .at_ns = clock_ns(), .window = window };

	if (report->at_ns && window == report->window && fresh.at_ns < report->at_ns + STORE_AGE_NS)
		return;
	fresh.is_known = !store_open(sources->store, STORE_READ, NULL, NULL, &store) && !read_store(store, sources, &fresh);
	*report = fresh;
}

/* --- the process ---------------------------------------------------------------------------------------------------------------------- */

static uint64_t rss_bytes(void)
{
	struct process_stat stat;

	return process_stat_read((uint32_t)getpid(), &stat) ? 0 : process_stat_rss_bytes(&stat);
}

/* --- health --------------------------------------------------------------------------------------------------------------------------- */

static void judge(struct agent_report *report)
{
	const struct window_numbers *windows = &report->windows;
	uint64_t window_ns = report->sources->window_ns, now_ns = clock_ns();
	uint64_t age_ns = now_ns > windows->last_ns ? now_ns - windows->last_ns : 0;

	report->is_healthy = false;
	if (age_ns > MAX_LATE * window_ns)
		snprintf(report->health, sizeof(report->health), "%s for %" PRIu64 " s: one is due every %" PRIu64 " s",
			 windows->last_number ? "no window has come" : "no window has come yet", age_ns / NS_PER_S, window_ns / NS_PER_S);
	else if (*windows->trouble)
		snprintf(report->health, sizeof(report->health), "the last window was not stored: %s", windows->trouble);
	else
		report->is_healthy = true;
	if (report->is_healthy)
		snprintf(report->health, sizeof(report->health), "ok");
}

void agent_report_make(const struct agent_sources *sources, struct store_report *store, struct agent_report *ret_report)
{
	*ret_report = (struct agent_report){ .sources = sources,
					     .cpu_ns = clock_of_ns(CLOCK_PROCESS_CPUTIME_ID),
					     .rss_bytes = rss_bytes() };
	agent_windows_numbers(sources->windows, &ret_report->windows);
	for (uint32_t i = 0; i < sources->nr_others; i++)
		agent_windows_numbers(sources->others[i], &ret_report->others[i]);
	flight_numbers(sources->flight, &ret_report->flight);
	agent_cost_recent(sources->costs, &ret_report->cost);
	ret_report->nr_programs = agent_cost_programs(sources->costs, ret_report->programs, AGENT_MAX_PROGRAMS);
	refresh_store(sources, ret_report->windows.last_number, store);
	ret_report->store = *store;
	for (uint32_t i = 0; i < sources->nr_deliveries; i++) {
		struct destination_report *destination = &ret_report->destinations[i];

		destination->name = delivery_name(sources->deliveries[i]);
		delivery_numbers(sources->deliveries[i], &destination->numbers);
		destination->nr_waiting = store->nr_waiting[i];
		destination->nr_evicted = store->nr_evicted[i];
	}
	judge(ret_report);
}
