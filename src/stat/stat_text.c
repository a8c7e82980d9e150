// SPDX-License-Identifier: Apache-2.0
/* The counts for people, and with separators for scripts (perf stat's columns). */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "stat/stat.h"

#define PERCENT 100.0
#define VALUE_COLUMNS 18

struct shown {
	double value;
	int decimals;
	const char *unit;
};

static struct shown shown_of(const struct stat_event *event)
{
	if (!strcmp(event->info.unit, "ns"))
		return (struct shown){ event->mean / NS_PER_MS, 2, "msec" };
	if (*event->info.unit || event->info.unit_scale != 1)
		return (struct shown){ event->mean * event->info.unit_scale, 2, event->info.unit };
	return (struct shown){ event->mean, 0, "" };
}

static const char *absence(const struct stat_event *event)
{
	return event->info.err ? "<not supported>" : "<not counted>";
}

static double running_percent(const struct stat_event *event)
{
	return event->count.enabled_ns ? PERCENT * (double)event->count.running_ns / (double)event->count.enabled_ns : PERCENT;
}

static void add_value(const struct stat_event *event, struct buffer *buffer)
{
	struct shown shown = shown_of(event);

	if (stat_is_counted(event))
		buffer_printf(buffer, "%*.*f %-5s", VALUE_COLUMNS, shown.decimals, shown.value, shown.unit);
	else
		buffer_printf(buffer, "%*s %-5s", VALUE_COLUMNS, absence(event), "");
}

static void add_row(const struct stat_arguments *arguments, const struct stat_report *report, const struct stat_event *event,
		    struct buffer *buffer)
{
	struct stat_metric metric;

	add_value(event, buffer);
	buffer_printf(buffer, " %-30s", event->info.name);
	if (!stat_is_counted(event))
		buffer_printf(buffer, " # %s", stat_reason(event));
	else if (stat_metric(report, event, &metric))
		buffer_printf(buffer, " # %9.3f %-24s", metric.value, metric.unit);
	if (report->nr_runs > 1 && stat_is_counted(event))
		buffer_printf(buffer, " (+- %5.2f%%)", stat_deviation(event->mean, event->squares, event->nr_counted));
	if (stat_is_counted(event) && event->nr_counted < report->nr_runs)
		buffer_printf(buffer, " (in %" PRIu32 " of the runs)", event->nr_counted);
	if (stat_is_counted(event) && event->count.running_ns < event->count.enabled_ns)
		buffer_printf(buffer, " (%.2f%%)", running_percent(event));
	while (buffer->size && buffer->data[buffer->size - 1] == ' ')
		buffer->size--;
	buffer_text(buffer, "\n");
}

static void add_target(const struct stat_arguments *arguments, const struct stat_report *report, struct buffer *buffer)
{
	bool is_of_command = stat_is_of_command(arguments);

	buffer_text(buffer, "\n Counted for ");
	if (is_of_command)
		buffer_printf(buffer, "'%s'", arguments->command[0]);
	else if (arguments->all_cpus)
		buffer_text(buffer, "the whole machine");
	else if (!arguments->targets.tgids.nr && !arguments->targets.tids.nr && !arguments->targets.cgroup)
		buffer_text(buffer, "all that ran");
	else
		target_options_text(&arguments->targets, NULL, buffer);
	if (arguments->cpus.nr)
		buffer_printf(buffer, " on CPU %s", arguments->cpu_list);
	if (arguments->command && !is_of_command)
		buffer_printf(buffer, " while '%s' ran", arguments->command[0]);
	if (report->user_only)
		buffer_text(buffer, ", in user space only");
	if (report->nr_runs > 1)
		buffer_printf(buffer, " (%" PRIu32 " runs)", report->nr_runs);
	buffer_text(buffer, ":\n\n");
}

static void add_times(const struct stat_arguments *arguments, const struct stat_report *report, struct buffer *buffer)
{
	buffer_printf(buffer, "\n%*.9f seconds elapsed", VALUE_COLUMNS, report->elapsed_s);
	if (report->nr_runs > 1)
		buffer_printf(buffer, " (+- %5.2f%%)", stat_deviation(report->elapsed_s, report->elapsed_squares, report->nr_runs));
	buffer_text(buffer, "\n\n");
	if (stat_is_of_command(arguments) && !report->goes_on)
		buffer_printf(buffer, "%*.9f seconds user\n%*.9f seconds system\n\n", VALUE_COLUMNS, report->user_s, VALUE_COLUMNS,
			      report->system_s);
}

/* Intervals omit the events that cannot be counted: they were reported at the start. */
void stat_text(const struct stat_arguments *arguments, const struct stat_report *report, struct buffer *buffer)
{
	if (report->at_s < 0)
		add_target(arguments, report, buffer);
	for (uint32_t i = 0; i < report->nr; i++) {
		if (report->at_s >= 0 && report->events[i].info.err)
			continue;
		if (report->at_s >= 0)
			buffer_printf(buffer, "%16.9f ", report->at_s);
		add_row(arguments, report, &report->events[i], buffer);
	}
	if (report->at_s < 0)
		add_times(arguments, report, buffer);
}

/* [time,]value,unit,event,[deviation,]running,percent,metric,its unit */
void stat_separated(const struct stat_arguments *arguments, const struct stat_report *report, struct buffer *buffer)
{
	const char *sep = arguments->separator;

	for (uint32_t i = 0; i < report->nr; i++) {
		const struct stat_event *event = &report->events[i];
		struct shown shown = shown_of(event);
		struct stat_metric metric;

		if (report->at_s >= 0 && event->info.err)
			continue;
		if (report->at_s >= 0)
			buffer_printf(buffer, "%.9f%s", report->at_s, sep);
		if (stat_is_counted(event))
			buffer_printf(buffer, "%.*f", shown.decimals, shown.value);
		else
			buffer_text(buffer, absence(event));
		buffer_printf(buffer, "%s%s%s%s%s", sep, shown.unit, sep, event->info.name, sep);
		if (report->nr_runs > 1)
			buffer_printf(buffer, "%.2f%%%s", stat_deviation(event->mean, event->squares, event->nr_counted), sep);
		buffer_printf(buffer, "%" PRIu64 "%s%.2f%s", event->count.running_ns, sep, running_percent(event), sep);
		if (stat_metric(report, event, &metric))
			buffer_printf(buffer, "%.3f%s%s\n", metric.value, sep, metric.unit);
		else
			buffer_printf(buffer, "%s\n", sep);
	}
}
