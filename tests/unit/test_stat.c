// SPDX-License-Identifier: Apache-2.0
/* What sonde stat makes of counts: metrics, text, columns, JSON. The counts are made up. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/perf_event.h>

#include "stat/stat.h"

#define HARDWARE(name, what, value) EVENT(name, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##what, value)
#define SOFTWARE(name, what, value) EVENT(name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##what, value)
#define CLOCK(name, value) WITH_UNIT(name, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, value, "ns", 1)
#define EVENT(name, type, config, value) WITH_UNIT(name, type, config, value, "", 1)
#define LOADS(cache) (PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8)
#define MISSES(cache) (LOADS(cache) | PERF_COUNT_HW_CACHE_RESULT_MISS << 16)
#define WITH_UNIT(name_, type_, config_, value, unit_, scale) \
	{ .info = { .name = name_, .type = type_, .config = config_, .unit = unit_, .unit_scale = scale }, \
	  .count = { .enabled_ns = 100, .running_ns = 100 }, \
	  .nr_runs = 1, \
	  .nr_counted = 1, \
	  .mean = value }
#define REPORT(events_) { .events = events_, .nr = ARRAY_SIZE(events_), .nr_runs = 1, .interval_s = 2, .elapsed_s = 2, .at_s = -1 }

/* `unit` NULL: the event has no metric. */
static void check_metric(const struct stat_report *report, uint32_t i, double value, const char *unit)
{
	struct stat_metric metric = { 0 };
	bool has_metric = stat_metric(report, &report->events[i], &metric);

	if (has_metric != (unit != NULL))
		fail_msg("%s: %s", report->events[i].info.name, has_metric ? metric.unit : "nothing");
	if (!unit)
		return;
	assert_string_equal(metric.unit, unit);
	if (fabs(metric.value - value) > 1e-9 * value)
		fail_msg("%s: %.12g %s, want %.12g", report->events[i].info.name, metric.value, unit, value);
}

static void test_metrics(void **state)
{
	struct stat_event events[] = { CLOCK("task-clock", 5e8),
				       HARDWARE("cycles", CPU_CYCLES, 2e9),
				       HARDWARE("instructions", INSTRUCTIONS, 5e9),
				       HARDWARE("cache-references", CACHE_REFERENCES, 8000),
				       HARDWARE("cache-misses", CACHE_MISSES, 1000),
				       HARDWARE("branches", BRANCH_INSTRUCTIONS, 4e6),
				       HARDWARE("branch-misses", BRANCH_MISSES, 1e5),
				       HARDWARE("stalled-cycles-frontend", STALLED_CYCLES_FRONTEND, 5e8),
				       HARDWARE("stalled-cycles-backend", STALLED_CYCLES_BACKEND, 1e9),
				       EVENT("L1-dcache-loads", PERF_TYPE_HW_CACHE, LOADS(L1D), 400),
				       EVENT("L1-dcache-load-misses", PERF_TYPE_HW_CACHE, MISSES(L1D), 3),
				       EVENT("LLC-load-misses", PERF_TYPE_HW_CACHE, MISSES(LL), 3),
				       SOFTWARE("page-faults", PAGE_FAULTS, 30),
				       EVENT("sched:sched_switch", PERF_TYPE_TRACEPOINT, 318, 2000),
				       WITH_UNIT("power/energy-pkg/", 21, 2, 1e9, "Joules", 2.5e-10) };
	struct stat_report report = REPORT(events);

	check_metric(&report, 0, 0.25, "CPUs utilized"); /* half a second in two */
	check_metric(&report, 1, 4, "GHz");
	check_metric(&report, 2, 2.5, "insn per cycle");
	check_metric(&report, 3, 16, "K/sec");
	check_metric(&report, 4, 12.5, "% of all cache refs");
	check_metric(&report, 5, 8, "M/sec");
	check_metric(&report, 6, 2.5, "% of all branches");
	check_metric(&report, 7, 25, "% frontend cycles idle");
	check_metric(&report, 8, 50, "% backend cycles idle");
	check_metric(&report, 9, 800, "/sec");
	check_metric(&report, 10, 0.75, "% of all accesses");
	check_metric(&report, 11, 0, NULL); /* no event counts all loads of that cache */
	check_metric(&report, 12, 60, "/sec");
	check_metric(&report, 13, 4, "K/sec");
	check_metric(&report, 14, 0, NULL);
	for (int i = 1; i <= 10; i++)
		events[i].info.config |= 10ull << 32; /* on one kind of cores */
	check_metric(&report, 2, 2.5, "insn per cycle");
	check_metric(&report, 10, 0.75, "% of all accesses");
	events[1].info.config = PERF_COUNT_HW_CPU_CYCLES; /* on all of them */
	check_metric(&report, 2, 0, NULL);
	check_metric(&report, 1, 4, "GHz");
	events[13].mean = 3e9;
	check_metric(&report, 13, 6, "G/sec");
}

/* A count that is missing, was not counted or is zero is not used as the base of a share. */
static void test_no_metrics(void **state)
{
	struct stat_event events[] = { HARDWARE("instructions", INSTRUCTIONS, 5e9), HARDWARE("cycles", CPU_CYCLES, 2e9) };
	struct stat_report report = REPORT(events);

	check_metric(&report, 0, 2.5, "insn per cycle");
	check_metric(&report, 1, 0, NULL); /* no clock */
	events[1].mean = 0;
	check_metric(&report, 0, 0, NULL);
	events[1].mean = 2e9;
	events[1].count.running_ns = 0;
	check_metric(&report, 0, 0, NULL);
	events[1].count.running_ns = 100;
	events[1].info.err = -ENOENT;
	check_metric(&report, 0, 0, NULL);
	events[1].info.err = 0;
	events[0].count.err = -EIO;
	check_metric(&report, 0, 0, NULL);
}

/* A share refers to an event counted in the same way: first by modifiers, then by groups. */
static void test_neighbours(void **state)
{
	struct stat_event by_modifier[] = { HARDWARE("cycles:u", CPU_CYCLES, 100),	   HARDWARE("cycles:k", CPU_CYCLES, 1000),
					    HARDWARE("instructions:u", INSTRUCTIONS, 300), HARDWARE("instructions:k", INSTRUCTIONS, 500),
					    HARDWARE("instructions", INSTRUCTIONS, 800),   CLOCK("task-clock:u", 50) };
	struct stat_event by_group[] = { HARDWARE("cycles", CPU_CYCLES, 100), HARDWARE("instructions", INSTRUCTIONS, 300),
					 HARDWARE("cycles", CPU_CYCLES, 400), HARDWARE("instructions", INSTRUCTIONS, 200),
					 HARDWARE("instructions", INSTRUCTIONS, 50) };
	struct stat_report modifiers = REPORT(by_modifier), groups = REPORT(by_group);

	by_modifier[0].info.flags = by_modifier[2].info.flags = by_modifier[5].info.flags = SONDE_COUNTER_NO_KERNEL;
	by_modifier[1].info.flags = by_modifier[3].info.flags = SONDE_COUNTER_NO_USER;
	by_modifier[1].info.flags |= SONDE_COUNTER_PINNED; /* a flag that does not change what is counted */
	check_metric(&modifiers, 2, 3, "insn per cycle");
	check_metric(&modifiers, 3, 0.5, "insn per cycle");
	check_metric(&modifiers, 4, 0, NULL);
	check_metric(&modifiers, 1, 20, "GHz"); /* clocks have no modes */
	by_group[0].info.group = by_group[1].info.group = 1;
	by_group[2].info.group = by_group[3].info.group = 2;
	check_metric(&groups, 1, 3, "insn per cycle");
	check_metric(&groups, 3, 0.5, "insn per cycle");
	check_metric(&groups, 4, 0.5, "insn per cycle"); /* alone: the first one available */
}

static void test_deviation(void **state)
{
	/* 9, 10 and 11: their spread is 1, that of their mean is smaller by the root of three */
	assert_true(fabs(stat_deviation(10, 2, 3) - 100 / sqrt(3) / 10) < 1e-9);
	assert_true(stat_deviation(10, 0, 3) == 0);
	assert_true(stat_deviation(10, 2, 1) == 0);
	assert_true(stat_deviation(0, 0, 3) == 0);
}

static void check_text(void (*write)(const struct stat_arguments *arguments, const struct stat_report *report, struct buffer *buffer),
		       const struct stat_arguments *arguments, const struct stat_report *report, const char *want)
{
	struct buffer buffer = BUFFER_INIT(1 << 16);

	write(arguments, report, &buffer);
	assert_int_equal(buffer.err, 0);
	assert_string_equal(buffer.data, want);
	buffer_done(&buffer);
}

/* A clock, an estimated value, one with a unit, one that is missing, one that was never scheduled. */
#define SHOWN \
	{ CLOCK("task-clock", 5e8), HARDWARE("cycles", CPU_CYCLES, 2e9), WITH_UNIT("power/energy-pkg/", 21, 2, 4e9, "Joules", 2.5e-10), \
	  EVENT("no/x/", 0, 9, 0), HARDWARE("branches", BRANCH_INSTRUCTIONS, 7) }

static void fill_shown(struct stat_event *events)
{
	events[0].info.json_name = "task_clock";
	events[1].info.json_name = "cpu_cycles";
	events[1].count = (struct sonde_count){ .enabled_ns = 200, .running_ns = 50, .scaled = true };
	events[3].info.err = -ENOENT;
	events[3].info.error = "no such PMU";
	events[4].count.running_ns = 0;
}

static void test_text(void **state)
{
	struct stat_event events[] = SHOWN;
	struct stat_report report = REPORT(events);
	struct stat_arguments arguments = { .all_cpus = true, .nr_runs = 1 };

	fill_shown(events);
	check_text(stat_text, &arguments, &report,
		   "\n Counted for the whole machine:\n\n"
		   "            500.00 msec  task-clock                     #     0.250 CPUs utilized\n"
		   "        2000000000       cycles                         #     4.000 GHz                      (25.00%)\n"
		   "              1.00 Joules power/energy-pkg/\n"
		   "   <not supported>       no/x/                          # no such PMU\n"
		   "     <not counted>       branches                       # the PMU never had room for it\n"
		   "\n       2.000000000 seconds elapsed\n\n");
	report.at_s = 1.5; /* an interval; missing events were reported at the start */
	check_text(
	    stat_text, &arguments, &report,
	    "     1.500000000             500.00 msec  task-clock                     #     0.250 CPUs utilized\n"
	    "     1.500000000         2000000000       cycles                         #     4.000 GHz                      (25.00%)\n"
	    "     1.500000000               1.00 Joules power/energy-pkg/\n"
	    "     1.500000000      <not counted>       branches                       # the PMU never had room for it\n");
	report.at_s = -1;
	report.nr = report.nr_runs = 3;
	for (int i = 0; i < 3; i++)
		events[i].nr_runs = events[i].nr_counted = 3;
	events[1].nr_counted = 2;
	events[1].squares = 2e16;
	report.goes_on = true;
	arguments.command = (char *[]){ "make", NULL };
	arguments.all_cpus = false;
	check_text(stat_text, &arguments, &report,
		   "\n Counted for 'make' (3 runs):\n\n"
		   "            500.00 msec  task-clock                     #     0.250 CPUs utilized            (+-  0.00%)\n"
		   "        2000000000       cycles                         #     4.000 GHz                      (+-  5.00%) (in 2 of the "
		   "runs) (25.00%)\n"
		   "              1.00 Joules power/energy-pkg/              (+-  0.00%)\n"
		   "\n       2.000000000 seconds elapsed (+-  0.00%)\n\n"); /* make's usage is not known yet */
}

static void test_separated(void **state)
{
	struct stat_event events[] = SHOWN;
	struct stat_report report = REPORT(events);
	struct stat_arguments arguments = { .separator = ";" };

	fill_shown(events);
	check_text(stat_separated, &arguments, &report,
		   "500.00;msec;task-clock;100;100.00;0.250;CPUs utilized\n"
		   "2000000000;;cycles;50;25.00;4.000;GHz\n"
		   "1.00;Joules;power/energy-pkg/;100;100.00;;\n"
		   "<not supported>;;no/x/;100;100.00;;\n"
		   "<not counted>;;branches;0;0.00;;\n");
	report.nr = 2;
	report.nr_runs = 3;
	events[1].nr_counted = 3;
	events[1].squares = 2e16;
	check_text(stat_separated, &arguments, &report,
		   "500.00;msec;task-clock;0.00%;100;100.00;0.250;CPUs utilized\n2000000000;;cycles;2.89%;50;25.00;4.000;GHz\n");
}

static void test_json(void **state)
{
	struct stat_event events[] = SHOWN;
	struct stat_report report = REPORT(events);
	struct stat_arguments arguments = { .json = true };

	fill_shown(events);
	report.at_s = 1.5; /* as one line */
	report.nr = 2;
	check_text(stat_json, &arguments, &report,
		   "{\"format\":\"sonde-counts\",\"version\":1,\"task_clock\":500000000,\"cpu_cycles\":2000000000,\"time_enabled\":100,"
		   "\"time_running\":100,\"at_ns\":1500000000,\"duration_ns\":2000000000,\"events\":["
		   "{\"name\":\"task-clock\",\"value\":500000000,\"enabled_ns\":100,\"running_ns\":100,\"scaled\":false,\"user_only\":"
		   "false,\"error\":null},"
		   "{\"name\":\"cycles\",\"value\":2000000000,\"enabled_ns\":200,\"running_ns\":50,\"scaled\":true,\"user_only\":false,"
		   "\"error\":null}]}\n");
	report.events += 3;
	check_text(
	    stat_json, &arguments, &report,
	    "{\"format\":\"sonde-counts\",\"version\":1,\"at_ns\":1500000000,\"duration_ns\":2000000000,\"events\":["
	    "{\"name\":\"no/x/\",\"value\":null,\"enabled_ns\":100,\"running_ns\":100,\"scaled\":false,\"user_only\":false,\"error\":\"no "
	    "such PMU\"},"
	    "{\"name\":\"branches\",\"value\":null,\"enabled_ns\":100,\"running_ns\":0,\"scaled\":false,\"user_only\":false,\"error\":"
	    "\"the PMU never had room for it\"}]}\n");
	report.events[1].count.enabled_ns = 0;
	report.events++;
	report.nr = 1;
	check_text(stat_json, &arguments, &report,
		   "{\"format\":\"sonde-counts\",\"version\":1,\"at_ns\":1500000000,\"duration_ns\":2000000000,\"events\":["
		   "{\"name\":\"branches\",\"value\":null,\"enabled_ns\":0,\"running_ns\":0,\"scaled\":false,\"user_only\":false,\"error\":"
		   "\"what it is counted for did not run\"}]}\n");
}

/* A run in which an event was not scheduled is not one with a count of 0. A value estimated in any run is an estimate. */
static void test_runs(void **state)
{
	static const struct sonde_count runs[] = { { .value = 10, .enabled_ns = 200, .running_ns = 200 },
						   { .err = -EBUSY },
						   { .value = 30, .enabled_ns = 100, .running_ns = 40, .scaled = true },
						   { .enabled_ns = 300 } };
	struct stat_event event = { .info = { .name = "cycles", .unit = "" } };

	stat_add(&event, &runs[1]);
	assert_false(stat_is_counted(&event));
	assert_string_equal(stat_reason(&event), strerror(EBUSY));
	event = (struct stat_event){ .info = event.info };
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		stat_add(&event, &runs[i]);
	assert_true(stat_is_counted(&event) && !stat_reason(&event));
	assert_true(event.nr_runs == 4 && event.nr_counted == 2 && event.mean == 20 && event.squares == 200 && event.count.scaled);
	assert_true(event.count.enabled_ns == 150 && event.count.running_ns == 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_metrics),	  cmocka_unit_test(test_no_metrics), cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_deviation), cmocka_unit_test(test_text),	     cmocka_unit_test(test_separated),
		cmocka_unit_test(test_json),	  cmocka_unit_test(test_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
