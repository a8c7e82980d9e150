/* SPDX-License-Identifier: Apache-2.0 */
/* agent_report: all that an agent can say of itself at a moment: what its pages and its status are made from. */
#pragma once
#include "agent/agent_cost.h"
#include "agent/agent_counters.h"
#include "agent/agent_windows.h"
#include "agent/delivery.h"
#include "flight/flight.h"
#include "settings/agent_measures.h"

#define AGENT_MAX_DESTINATIONS 4

/* What the report is made from. Borrowed; lives as long as the server. */
struct agent_sources {
	struct agent_windows *windows; /* of the main recording */
	struct agent_windows *others[MEASURE_COUNT];
	uint32_t nr_others;
	struct delivery *deliveries[AGENT_MAX_DESTINATIONS];
	uint32_t nr_deliveries;
	struct flight *flight;
	struct agent_cost_reader *costs;
	struct agent_counters *counters; /* NULL: none */
	const char *store; /* directory */
	uint64_t freq_hz, window_ns;
	uint64_t start_unix_ns;
};

struct destination_report {
	const char *name;  /* borrowed from the delivery */
	struct delivery_numbers numbers;
	uint64_t nr_waiting, nr_evicted; /* rows of the store */
};

/* Of the store itself. Reading it costs time, so a report that is asked for soon after another has the same ones, unless a window came. */
struct store_report {
	uint64_t at_ns;    /* when it was read; 0: never */
	uint32_t window;   /* the last one that had come by then */
	bool is_known;     /* the store could be read */
	uint64_t nr_rows, nr_bytes;
	uint64_t nr_waiting[AGENT_MAX_DESTINATIONS], nr_evicted[AGENT_MAX_DESTINATIONS];
};

struct agent_report {
	const struct agent_sources *sources;
	struct window_numbers windows, others[MEASURE_COUNT];
	struct store_report store;
	struct flight_numbers flight;
	struct destination_report destinations[AGENT_MAX_DESTINATIONS];
	uint64_t cpu_ns, rss_bytes; /* of this process */
	struct agent_cost cost;     /* of all */
	struct agent_program programs[AGENT_MAX_PROGRAMS];
	uint32_t nr_programs;
	bool is_healthy;
	char health[320];  /* "ok", or what is wrong */
};

/* The rate of now: --max-cpu may have lowered it. */
static inline uint64_t agent_report_freq_hz(const struct agent_report *report)
{
	return report->windows.freq_hz ?: report->sources->freq_hz;
}
/* `store`: zeros at first, then from the last call. */
void agent_report_make(const struct agent_sources *sources, struct store_report *store, struct agent_report *ret_report);
