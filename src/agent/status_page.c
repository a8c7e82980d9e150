// SPDX-License-Identifier: Apache-2.0
#include "agent/status_page.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "codec/json.h"
#include "flight/flight_page.h"

#define FORMAT	   "sonde-agent"
#define VERSION	   1
#define TIME_BYTES 32
#define MIB	   (1024.0 * 1024.0)

/* --- text ----------------------------------------------------------------------------------------------------------------------------- */

static void write_time(struct buffer *buffer, uint64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / NS_PER_S);
	char text[TIME_BYTES] = "";
	struct tm parts;

	if (localtime_r(&seconds, &parts))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	buffer_text(buffer, text);
}

/* Names and numbers of a group, those that are not 0; `nothing` if there is none. */
static void write_group(struct buffer *buffer, const struct window_numbers *windows, const char *group, const char *nothing)
{
	const char *between = "";

	for (uint32_t i = 0; i < windows->nr_counts; i++) {
		if (strcmp(windows->counts[i].group, group) != 0 || !windows->counts[i].nr)
			continue;
		buffer_printf(buffer, "%s%" PRIu64 " %s", between, windows->counts[i].nr, windows->counts[i].name);
		between = ", ";
	}
	if (!*between)
		buffer_text(buffer, nothing);
}

static void write_windows(struct buffer *buffer, const struct window_numbers *windows)
{
	buffer_printf(buffer, "windows: %" PRIu64 " stored, %" PRIu64 " lost", windows->nr_stored, windows->nr_lost + windows->nr_unmade);
	if (windows->last_number) {
		buffer_text(buffer, "; the last from ");
		write_time(buffer, windows->last_start_unix_ns);
		buffer_printf(buffer, ", %.1f s, %" PRIu64 " samples",
			      (double)(windows->last_end_unix_ns - windows->last_start_unix_ns) / (double)NS_PER_S,
			      windows->last_nr_samples);
	}
	buffer_text(buffer, "\nsamples: ");
	write_group(buffer, windows, "samples", "none");
	buffer_text(buffer, "\nlost: ");
	write_group(buffer, windows, "lost", "none");
	buffer_text(buffer, "\nstacks: ");
	write_group(buffer, windows, "stacks", "none");
	buffer_text(buffer, "\nprocesses: ");
	write_group(buffer, windows, "processes", "none of a language's runtime");
	buffer_text(buffer, "\naudit: ");
	write_group(buffer, windows, "audit", "none");
	buffer_text(buffer, "\n");
}

/* The kernel counts runs with --max-cpu alone. */
static void write_programs(struct buffer *buffer, const struct agent_report *report)
{
	const char *between = "programs: ";

	for (uint32_t i = 0; i < report->nr_programs; i++) {
		const struct agent_program *program = &report->programs[i];

		buffer_printf(buffer, "%s%s", between, program->name);
		between = ", ";
		if (program->nr_runs)
			buffer_printf(buffer, " %" PRIu64 " times %.2f us", program->nr_runs,
				      (double)program->ns / (double)program->nr_runs / (double)NS_PER_US);
	}
	if (report->nr_programs)
		buffer_text(buffer, "\n");
}

static void write_other(struct buffer *buffer, const char *type, const struct window_numbers *windows)
{
	buffer_printf(buffer, "%s: %" PRIu64 " windows stored, %" PRIu64 " lost; samples: ", type, windows->nr_stored,
		      windows->nr_lost + windows->nr_unmade);
	write_group(buffer, windows, "samples", "none");
	buffer_text(buffer, "; lost: ");
	write_group(buffer, windows, "lost", "none");
	buffer_text(buffer, "\n");
}

static void write_destination(struct buffer *buffer, const struct destination_report *destination)
{
	const struct delivery_numbers *numbers = &destination->numbers;

	buffer_printf(buffer,
		      "to %s: %" PRIu64 " delivered, %" PRIu64 " waiting, %" PRIu64 " refused, %" PRIu64 " rejected, %" PRIu64
		      " split, %" PRIu64 " evicted before, %" PRIu64 " tried again, %" PRIu64 " possible repeats",
		      destination->name, numbers->nr_sent, destination->nr_waiting, numbers->nr_refused, numbers->nr_rejected,
		      numbers->nr_split, destination->nr_evicted, numbers->nr_retries, numbers->nr_repeats);
	if (numbers->last_unix_ns) {
		buffer_text(buffer, "; the last at ");
		write_time(buffer, numbers->last_unix_ns);
	}
	if (*numbers->trouble)
		buffer_printf(buffer, "; now: %s", numbers->trouble);
	buffer_text(buffer, "\n");
}

void status_page_text(const struct agent_report *report, struct buffer *buffer)
{
	const struct agent_sources *sources = report->sources;

	buffer_printf(buffer, "sonde %s, process %d, since ", sonde_version(), getpid());
	write_time(buffer, sources->start_unix_ns);
	buffer_printf(buffer, ": %" PRIu64 " Hertz, a window each %" PRIu64 " s\nhealth: %s\n", agent_report_freq_hz(report),
		      sources->window_ns / NS_PER_S, report->health);
	write_windows(buffer, &report->windows);
	for (uint32_t i = 0; i < sources->nr_others; i++)
		write_other(buffer, sources->others[i]->type, &report->others[i]);
	if (report->store.is_known)
		buffer_printf(buffer, "store: %" PRIu64 " profiles, %.1f MiB in %s; %" PRIu64 " evicted\n", report->store.nr_rows,
			      (double)report->store.nr_bytes / MIB, store_is_in_memory(sources->store) ? "memory" : sources->store,
			      report->windows.nr_evicted);
	else
		buffer_printf(buffer, "store: %s, which cannot be read now\n", sources->store);
	if (report->flight.is_on)
		flight_page_text(buffer, &report->flight);
	for (uint32_t i = 0; i < sources->nr_deliveries; i++)
		write_destination(buffer, &report->destinations[i]);
	write_programs(buffer, report);
	agent_counters_text(sources->counters, buffer);
	buffer_printf(buffer, "own cost: %.2f s of CPU time, %.1f MiB of memory; with workers and %.1f MiB of BPF maps %.1f MiB\n",
		      (double)report->cpu_ns / (double)NS_PER_S, (double)report->rss_bytes / MIB,
		      (double)report->cost.map_bytes / MIB, (double)report->cost.memory_bytes / MIB);
}

/* --- JSON ----------------------------------------------------------------------------------------------------------------------------- */

static void add_agent(struct json *json, const struct agent_report *report)
{
	json_key_text(json, "format", FORMAT);
	json_key_u64(json, "version", VERSION);
	json_key_text(json, "sonde", sonde_version());
	json_key_u64(json, "pid", (uint64_t)getpid());
	json_key_u64(json, "start_unix_ns", report->sources->start_unix_ns);
	json_key_u64(json, "freq_hz", agent_report_freq_hz(report));
	json_key_u64(json, "window_ns", report->sources->window_ns);
	json_key(json, "healthy");
	json_bool(json, report->is_healthy);
	json_key_text(json, "health", report->health);
	json_key_u64(json, "cpu_ns", report->cpu_ns);
	json_key_u64(json, "rss_bytes", report->rss_bytes);
	json_key_u64(json, "map_bytes", report->cost.map_bytes);
	json_key_u64(json, "memory_bytes", report->cost.memory_bytes);
}

static void add_programs(struct json *json, const struct agent_report *report)
{
	json_key(json, "programs");
	json_open(json, '[');
	for (uint32_t i = 0; i < report->nr_programs; i++) {
		json_open(json, '{');
		json_key_text(json, "name", report->programs[i].name);
		json_key_u64(json, "nr_programs", report->programs[i].nr_programs);
		json_key_u64(json, "nr_runs", report->programs[i].nr_runs);
		json_key_u64(json, "ns", report->programs[i].ns);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void add_last(struct json *json, const struct window_numbers *windows)
{
	json_key(json, "last");
	if (!windows->last_number) {
		json_null(json);
		return;
	}
	json_open(json, '{');
	json_key_u64(json, "number", windows->last_number);
	json_key_u64(json, "start_unix_ns", windows->last_start_unix_ns);
	json_key_u64(json, "end_unix_ns", windows->last_end_unix_ns);
	json_key_u64(json, "nr_samples", windows->last_nr_samples);
	json_close(json, '}');
}

/* An object for each group: the counts of one stand together. */
static void add_counts(struct json *json, const struct window_numbers *windows)
{
	const char *group = "";

	json_key(json, "counts");
	json_open(json, '{');
	for (uint32_t i = 0; i < windows->nr_counts; i++) {
		const struct sonde_window_count *count = &windows->counts[i];

		if (strcmp(group, count->group) != 0) {
			if (*group)
				json_close(json, '}');
			group = count->group;
			json_key(json, group);
			json_open(json, '{');
		}
		json_key_u64(json, count->name, count->nr);
	}
	if (*group)
		json_close(json, '}');
	json_close(json, '}');
}

static void add_windows(struct json *json, const char *type, const struct window_numbers *windows)
{
	json_key(json, "windows");
	json_open(json, '{');
	json_key_text(json, "type", type);
	json_key_u64(json, "nr_stored", windows->nr_stored);
	json_key_u64(json, "nr_not_stored", windows->nr_lost);
	json_key_u64(json, "nr_not_made", windows->nr_unmade);
	add_last(json, windows);
	json_close(json, '}');
	add_counts(json, windows);
}

/* The kinds of windows beside the main one. */
static void add_others(struct json *json, const struct agent_report *report)
{
	json_key(json, "others");
	json_open(json, '[');
	for (uint32_t i = 0; i < report->sources->nr_others; i++) {
		json_open(json, '{');
		add_windows(json, report->sources->others[i]->type, &report->others[i]);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void add_known(struct json *json, const char *key, bool is_known, uint64_t number)
{
	json_key(json, key);
	if (is_known)
		json_u64(json, number);
	else
		json_null(json);
}

static void add_store(struct json *json, const struct agent_report *report)
{
	json_key(json, "store");
	json_open(json, '{');
	json_key_text(json, "directory", report->sources->store);
	json_key_u64(json, "nr_evicted", report->windows.nr_evicted);
	add_known(json, "nr_profiles", report->store.is_known, report->store.nr_rows);
	add_known(json, "bytes", report->store.is_known, report->store.nr_bytes);
	json_close(json, '}');
}

static void add_destination(struct json *json, const struct destination_report *destination, bool is_known)
{
	const struct delivery_numbers *numbers = &destination->numbers;

	json_open(json, '{');
	json_key_text(json, "name", destination->name);
	json_key_u64(json, "nr_delivered", numbers->nr_sent);
	json_key_u64(json, "bytes", numbers->nr_bytes);
	json_key_u64(json, "nr_refused", numbers->nr_refused);
	json_key_u64(json, "nr_rejected", numbers->nr_rejected);
	json_key_u64(json, "nr_split", numbers->nr_split);
	json_key_u64(json, "nr_retries", numbers->nr_retries);
	json_key_u64(json, "nr_possible_repeats", numbers->nr_repeats);
	add_known(json, "nr_waiting", is_known, destination->nr_waiting);
	add_known(json, "nr_evicted", is_known, destination->nr_evicted);
	add_known(json, "last_success_unix_ns", numbers->last_unix_ns, numbers->last_unix_ns);
	json_key(json, "trouble");
	if (*numbers->trouble)
		json_text(json, numbers->trouble);
	else
		json_null(json);
	json_close(json, '}');
}

void status_page_json(const struct agent_report *report, struct buffer *buffer)
{
	struct json json = { .buffer = buffer };

	json_open(&json, '{');
	add_agent(&json, report);
	add_windows(&json, report->sources->windows->type, &report->windows);
	add_others(&json, report);
	add_store(&json, report);
	add_programs(&json, report);
	agent_counters_json(report->sources->counters, &json);
	if (report->flight.is_on)
		flight_page_json(&json, &report->flight);
	json_key(&json, "destinations");
	json_open(&json, '[');
	for (uint32_t i = 0; i < report->sources->nr_deliveries; i++)
		add_destination(&json, &report->destinations[i], report->store.is_known);
	json_close(&json, ']');
	json_close(&json, '}');
	buffer_text(buffer, "\n");
}
