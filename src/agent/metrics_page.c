// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics_page.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "codec/metrics_text.h"
#include "flight/flight_page.h"

/* Families of the counts of windows: one for each group, but for "samples", whose names are families. */
static const struct {
	const char *group, *name, *type, *label, *help;
} groups[] = {
	{ "filtered", "sonde_samples_filtered_total", "counter", "reason", "Samples that were not asked for." },
	{ "lost", "sonde_samples_lost_total", "counter", "reason", "Samples that were asked for and are lost." },
	{ "stacks", "sonde_stacks_total", "counter", "end", "User stacks of recorded samples, by where they end: complete, or why not." },
	{ "missed", "sonde_samples_lacking_total", "counter", "part", "Recorded samples without this part of them." },
	{ "events_lost", "sonde_events_lost_total", "counter", "kind", "Events of the kernel on processes and mappings that were lost." },
	{ "audit", "sonde_audited_stacks_total", "counter", "result", "Stacks that were unwound once more, with --audit-every." },
	{ "processes", "sonde_runtime_processes", "gauge", "runtime", "Processes of a language's runtime since the session began." },
};

static const struct {
	const char *name, *family, *help;
} samples[] = {
	{ "recorded", "sonde_samples_recorded_total", "Samples that were recorded." },
	{ "expected", "sonde_samples_expected_total", "Samples that were due, by the clock." },
	{ "late", "sonde_samples_deferred_total", "Samples whose stack was walked in user space." },
};

static const struct {
	const char *name, *type, *help;
	size_t offset; /* of the number in struct destination_report */
	bool of_store; /* known only if the store could be read */
} of_destinations[] = {
#define X(name, type, help, field, of_store) { "sonde_destination_" name, type, help, offsetof(struct destination_report, field), of_store }
	X("profiles_delivered_total", "counter", "Profiles that the destination has taken.", numbers.nr_sent, false),
	X("delivered_bytes_total", "counter", "Bytes of the messages that it has taken, as they were sent.", numbers.nr_bytes, false),
	X("profiles_refused_total", "counter", "Profiles that it will never take.", numbers.nr_refused, false),
	X("profiles_rejected_total", "counter", "Profiles of messages that it took in part.", numbers.nr_rejected, false),
	X("profiles_split_total", "counter", "Profiles that were too large for it, and were sent in parts.", numbers.nr_split, false),
	X("retries_total", "counter", "Attempts that failed and are made again.", numbers.nr_retries, false),
	X("possible_repeats_total", "counter", "Profiles that it may have received more than once.", numbers.nr_repeats, false),
	X("profiles_waiting", "gauge", "Profiles of the store that it has not received.", nr_waiting, true),
	X("profiles_evicted_total", "counter", "Profiles that were removed from the store before it received them, also by earlier agents.",
	  nr_evicted, true),
#undef X
};

/* A line of a family but for its number. */
static void begin_line(struct buffer *buffer, const char *name, const char *label, const char *value)
{
	buffer_text(buffer, name);
	metrics_label(buffer, "{", label, value);
	buffer_text(buffer, "} ");
}

/* The same of windows of one kind; `label` NULL: none more. */
static void begin_line_of(struct buffer *buffer, const char *name, const char *type, const char *label, const char *value)
{
	buffer_text(buffer, name);
	metrics_label(buffer, "{", "type", type);
	if (label)
		metrics_label(buffer, ",", label, value);
	buffer_text(buffer, "} ");
}

/* Nanoseconds as seconds. */
static void write_seconds(struct buffer *buffer, uint64_t ns)
{
	buffer_printf(buffer, "%" PRIu64 ".%09" PRIu64 "\n", ns / NS_PER_S, ns % NS_PER_S);
}

static void write_time(struct buffer *buffer, const char *name, const char *type, const char *help, uint64_t ns)
{
	metrics_head(buffer, name, type, help);
	buffer_printf(buffer, "%s ", name);
	write_seconds(buffer, ns);
}

/* --- families ------------------------------------------------------------------------------------------------------------------------- */

/* The i-th kind of windows, the main one first; false ends. */
static bool kind_at(const struct agent_report *report, uint32_t i, const char **ret_type, const struct window_numbers **ret_windows)
{
	if (i > report->sources->nr_others)
		return false;
	*ret_type = i ? report->sources->others[i - 1]->type : report->sources->windows->type;
	*ret_windows = i ? &report->others[i - 1] : &report->windows;
	return true;
}

static void write_group(struct buffer *buffer, const struct agent_report *report, size_t group)
{
	const struct window_numbers *windows;
	const char *type;

	metrics_head(buffer, groups[group].name, groups[group].type, groups[group].help);
	for (uint32_t kind = 0; kind_at(report, kind, &type, &windows); kind++) {
		for (uint32_t i = 0; i < windows->nr_counts; i++) {
			if (strcmp(windows->counts[i].group, groups[group].group) != 0)
				continue;
			begin_line_of(buffer, groups[group].name, type, groups[group].label, windows->counts[i].name);
			buffer_printf(buffer, "%" PRIu64 "\n", windows->counts[i].nr);
		}
	}
}

static void write_programs(struct buffer *buffer, const struct agent_report *report)
{
	metrics_head(buffer, "sonde_bpf_program_seconds_total", "counter",
		     "Run time of its BPF programs of a name, with the programs that these call, while the kernel counts it.");
	for (uint32_t i = 0; i < report->nr_programs; i++) {
		begin_line(buffer, "sonde_bpf_program_seconds_total", "program", report->programs[i].name);
		buffer_printf(buffer, "%.9f\n", (double)report->programs[i].ns / (double)NS_PER_S);
	}
}

static uint64_t count_of(const struct window_numbers *windows, const char *group, const char *name)
{
	for (uint32_t i = 0; i < windows->nr_counts; i++) {
		if (!strcmp(windows->counts[i].group, group) && !strcmp(windows->counts[i].name, name))
			return windows->counts[i].nr;
	}
	return 0;
}

static void write_samples(struct buffer *buffer, const struct agent_report *report, size_t sample)
{
	const struct window_numbers *windows;
	const char *type;

	metrics_head(buffer, samples[sample].family, "counter", samples[sample].help);
	for (uint32_t kind = 0; kind_at(report, kind, &type, &windows); kind++) {
		begin_line_of(buffer, samples[sample].family, type, NULL, NULL);
		buffer_printf(buffer, "%" PRIu64 "\n", count_of(windows, "samples", samples[sample].name));
	}
}

static void write_stored(struct buffer *buffer, const struct agent_report *report)
{
	static const char stored[] = "sonde_windows_stored_total", lost[] = "sonde_windows_lost_total";
	const struct window_numbers *windows;
	const char *type;

	metrics_head(buffer, stored, "counter", "Windows whose profile was stored.");
	for (uint32_t kind = 0; kind_at(report, kind, &type, &windows); kind++) {
		begin_line_of(buffer, stored, type, NULL, NULL);
		buffer_printf(buffer, "%" PRIu64 "\n", windows->nr_stored);
	}
	metrics_head(buffer, lost, "counter", "Windows that are lost: their profile was not made, or the store could not take it.");
	for (uint32_t kind = 0; kind_at(report, kind, &type, &windows); kind++) {
		begin_line_of(buffer, lost, type, "reason", "store");
		buffer_printf(buffer, "%" PRIu64 "\n", windows->nr_lost);
		begin_line_of(buffer, lost, type, "reason", "profile");
		buffer_printf(buffer, "%" PRIu64 "\n", windows->nr_unmade);
	}
}

static void write_windows(struct buffer *buffer, const struct agent_report *report)
{
	write_stored(buffer, report);
	write_time(buffer, "sonde_last_window_timestamp_seconds", "gauge", "When the last window ended; 0: there was none yet.",
		   report->windows.last_end_unix_ns);
	write_time(buffer, "sonde_unsampled_seconds_total", "counter",
		   "Time between two recordings, when the settings were read again: nothing was sampled.", report->windows.gap_ns);
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		write_samples(buffer, report, i);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		write_group(buffer, report, i);
}

/* Of all kinds. */
static uint64_t nr_evicted(const struct agent_report *report)
{
	const struct window_numbers *windows;
	const char *type;
	uint64_t nr = 0;

	for (uint32_t kind = 0; kind_at(report, kind, &type, &windows); kind++)
		nr += windows->nr_evicted;
	return nr;
}

static void write_store(struct buffer *buffer, const struct agent_report *report)
{
	metrics_number(buffer, "sonde_store_profiles_evicted_total", "counter",
		       "Profiles that were removed from the store for age or size.", nr_evicted(report));
	if (!report->store.is_known)
		return;
	metrics_number(buffer, "sonde_store_profiles", "gauge", "Profiles in the store.", report->store.nr_rows);
	metrics_number(buffer, "sonde_store_bytes", "gauge", "Bytes of the profiles in the store.", report->store.nr_bytes);
}

static void write_last(struct buffer *buffer, const struct agent_report *report)
{
	static const char name[] = "sonde_destination_last_success_timestamp_seconds";

	metrics_head(buffer, name, "gauge", "When it took a profile; 0: not yet.");
	for (uint32_t i = 0; i < report->sources->nr_deliveries; i++) {
		begin_line(buffer, name, "destination", report->destinations[i].name);
		write_seconds(buffer, report->destinations[i].numbers.last_unix_ns);
	}
}

static void write_destinations(struct buffer *buffer, const struct agent_report *report)
{
	for (size_t i = 0; i < ARRAY_SIZE(of_destinations); i++) {
		if (of_destinations[i].of_store && !report->store.is_known)
			continue;
		metrics_head(buffer, of_destinations[i].name, of_destinations[i].type, of_destinations[i].help);
		for (uint32_t j = 0; j < report->sources->nr_deliveries; j++) {
			uint64_t number;

			memcpy(&number, (const char *)&report->destinations[j] + of_destinations[i].offset, sizeof(number));
			begin_line(buffer, of_destinations[i].name, "destination", report->destinations[j].name);
			buffer_printf(buffer, "%" PRIu64 "\n", number);
		}
	}
	write_last(buffer, report);
}

void metrics_page_write(const struct agent_report *report, struct buffer *buffer)
{
	metrics_head(buffer, "sonde_build_info", "gauge", "The version, always 1.");
	begin_line(buffer, "sonde_build_info", "version", sonde_version());
	buffer_text(buffer, "1\n");
	metrics_number(buffer, "sonde_healthy", "gauge", "1: windows come, and the store takes them, as /healthz says.",
		       report->is_healthy);
	write_time(buffer, "sonde_start_timestamp_seconds", "gauge", "When the agent began.", report->sources->start_unix_ns);
	write_windows(buffer, report);
	write_store(buffer, report);
	if (report->flight.is_on)
		flight_page_metrics(buffer, &report->flight);
	if (report->sources->nr_deliveries)
		write_destinations(buffer, report);
	metrics_number(buffer, "sonde_sampling_hertz", "gauge", "Rate of sampling, which --max-cpu lowers.",
		       agent_report_freq_hz(report));
	write_time(buffer, "sonde_cpu_seconds_total", "counter", "CPU time of the agent's processes.",
		   report->cost.cpu_ns);
	write_time(buffer, "sonde_bpf_seconds_total", "counter", "Run time of its BPF programs, which is counted with --max-cpu.",
		   report->cost.bpf_ns);
	metrics_number(buffer, "sonde_resident_memory_bytes", "gauge", "Resident memory of the agent's processes.",
		       report->cost.rss_bytes);
	metrics_number(buffer, "sonde_bpf_map_bytes", "gauge", "Kernel memory of its BPF maps.", report->cost.map_bytes);
	metrics_number(buffer, "sonde_memory_bytes", "gauge", "What --max-memory bounds: of this process, its workers' own, and BPF maps.",
		       report->cost.memory_bytes);
	write_programs(buffer, report);
	agent_counters_metrics(report->sources->counters, buffer);
	write_time(buffer, "sonde_process_cpu_seconds_total", "counter", "CPU time of this process, without its workers.", report->cpu_ns);
	metrics_number(buffer, "sonde_process_resident_memory_bytes", "gauge", "Resident memory of this process, without its workers.",
		       report->rss_bytes);
}
