/* SPDX-License-Identifier: Apache-2.0 */
/* stat: what the files of this verb share. */
#pragma once
#include <sonde/counter.h>
#include <sonde/sonde.h>

#include "base/buffer.h"
#include "base/cpus.h"
#include "cli/option.h"
#include "cli/target_options.h"

struct stat_arguments {
	struct option_texts events, outputs;
	struct target_options targets;
	const char *cpu_list, *separator, *format;
	struct cpus cpus;
	bool all_cpus, no_inherit, group, no_scale, user_only, kernel_only;
	bool json; /* from --format or the suffix */
	uint64_t nr_runs, interval_ms, duration_s;
	char *const *command;
};

/* An event over all runs, or over one interval. */
struct stat_event {
	struct sonde_counter_info info; /* borrows from the report's set */
	struct sonde_count count;       /* times: means of the runs; scaled: in any run; err: the reason when no run counted it */
	uint32_t nr_runs, nr_counted;   /* all runs, and those that counted it */
	uint64_t enabled_sum_ns, running_sum_ns;
	double mean, squares; /* of its value over the runs that counted it; the sum of squared deviations from the mean */
};

struct stat_report {
	struct sonde_counters *set;     /* the set of the last run's session */
	struct stat_event *events;
	uint32_t nr;
	uint32_t nr_runs;
	double elapsed_s, elapsed_squares, user_s, system_s; /* means */
	bool goes_on;                   /* the command has not ended: its usage is not known */
	double at_s;                    /* of an interval: time since the start; else negative */
	double interval_s;              /* the time that the values cover */
	bool user_only;                 /* because counting the kernel was not permitted */
};

void stat_add_to_mean(double value, uint32_t nr, double *mean, double *squares);
/* The likely error of the mean, in percent of the mean. */
double stat_deviation(double mean, double squares, uint32_t nr_runs);
/* Adds the count of a run or an interval. */
void stat_add(struct stat_event *event, const struct sonde_count *count);
/* True when the event has a value. */
bool stat_is_counted(const struct stat_event *event);
/* Why there is no value; NULL: there is one. */
const char *stat_reason(const struct stat_event *event);

/* What an event says in relation to another one: "0.87 insn per cycle". False: nothing. */
struct stat_metric {
	double value;
	const char *unit;
};
bool stat_metric(const struct stat_report *report, const struct stat_event *event, struct stat_metric *ret_metric);

void stat_text(const struct stat_arguments *arguments, const struct stat_report *report, struct buffer *buffer);
void stat_separated(const struct stat_arguments *arguments, const struct stat_report *report, struct buffer *buffer);
void stat_json(const struct stat_arguments *arguments, const struct stat_report *report, struct buffer *buffer);

/* Counts all that runs on the CPUs or in a cgroup, even with a command. */
static inline bool stat_is_whole(const struct stat_arguments *arguments)
{
	return arguments->all_cpus || arguments->cpus.nr || arguments->targets.cgroup;
}

/* Counts the command itself, and not something else while it runs. */
static inline bool stat_is_of_command(const struct stat_arguments *arguments)
{
	return arguments->command && !stat_is_whole(arguments) && !arguments->targets.tgids.nr && !arguments->targets.tids.nr;
}

/* Opens a session for the arguments and puts its set into the report. `window`, `arg`: the session's callback. Returns an exit code; when
 * nothing can be counted, the reasons have been reported. The caller owns *ret_session also on failure. */
MUST_CHECK int stat_open(const struct stat_arguments *arguments, struct stat_report *report,
			 void (*window)(void *arg, const struct sonde_window *window), void *arg, struct sonde_session **ret_session);
/* Counts and prints; returns the exit code. */
int stat_count(const struct stat_arguments *arguments);
