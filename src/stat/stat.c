// SPDX-License-Identifier: Apache-2.0
/* sonde stat: the command line. */
#include "stat/stat.h"

#include <errno.h>
#include <string.h>

#include "cli/machine.h"
#include "cli/option_rows.h"
#include "cli/output.h"
#include "cli/plain_format.h"
#include "cli/verbs.h"

#define AT(field)    offsetof(struct stat_arguments, field)
#define FIELD(field) .offset = AT(field)
#define MIN_INTERVAL_MS 1

static const struct option_spec options[] = {
	{ .group = "What is counted",
	  .letter = 'e',
	  .name = "event",
	  .metavar = "EVENT[,EVENT...]",
	  .kind = OPTION_TEXTS,
	  FIELD(events),
	  .help = "perf's names: cycles, page-faults, LLC-load-misses, rNNN, pmu/terms/, subsystem:tracepoint; :u or :k behind them; {a,b} "
		  "is a group; or -e hardware, "
		  "-e software, -e cache: all of these; may be repeated" },
	{ .letter = 'U', .name = "user-only", .kind = OPTION_FLAG, FIELD(user_only), .help = "what happens in user space" },
	{ .letter = 'K',
	  .name = "kernel-only",
	  .kind = OPTION_FLAG,
	  FIELD(kernel_only),
	  .excludes = "user-only",
	  .instead = "leave both out to count both",
	  .help = "what happens in the kernel" },
	{ .name = "group", .kind = OPTION_FLAG, FIELD(group), .help = "all events in one group: counted all at the same time or none" },
	{ .letter = 'i', .name = "no-inherit", .kind = OPTION_FLAG, FIELD(no_inherit), .help = "not what the counted threads start" },
	{ .name = "no-scale",
	  .kind = OPTION_FLAG,
	  FIELD(no_scale),
	  .help = "as counted, also where more was asked for than can be counted at once; else such values are estimated" },
	OPTION_ROW_DURATION(AT(duration_s), "for so many seconds; until Ctrl-C, or the end of what is counted"),
	{ .letter = 'r',
	  .name = "repeat",
	  .metavar = "N",
	  .kind = OPTION_NUMBER,
	  FIELD(nr_runs),
	  .min = 1,
	  .max = UINT16_MAX,
	  .help = "run the command so often; means, and how far they are likely off" },
	{ .letter = 'I',
	  .name = "interval",
	  .metavar = "MS",
	  .kind = OPTION_NUMBER,
	  FIELD(interval_ms),
	  .min = MIN_INTERVAL_MS,
	  .max = UINT32_MAX,
	  .excludes = "repeat",
	  .instead = "leave one out",
	  .help = "also what was counted in each interval of so many milliseconds" },

	TARGET_OPTIONS_IDS(struct stat_arguments, targets),
	TARGET_OPTION_CGROUP(struct stat_arguments, targets),
	{ .letter = 'a',
	  .name = "all-cpus",
	  .kind = OPTION_FLAG,
	  FIELD(all_cpus),
	  .help = "everything that runs; so it is when nothing else is asked for" },
	{ .letter = 'C',
	  .name = "cpu",
	  .metavar = "CPU[,CPU...]",
	  .kind = OPTION_TEXT,
	  FIELD(cpu_list),
	  .excludes = "all-cpus",
	  .instead = "leave one out",
	  .help = "only on these CPUs, such as 0,2-3" },

	{ .group = "How it is written",
	  .letter = 'x',
	  .name = "field-separator",
	  .metavar = "SEP",
	  .kind = OPTION_TEXT,
	  FIELD(separator),
	  .help = "fields with SEP between them, as of perf stat -x" },
	{ .name = "format",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(format),
	  .value_name = plain_format_at,
	  .excludes = "field-separator",
	  .instead = "leave one out",
	  .help = "text, or json: one object, with a number for each event that has been counted, and all about all of them in \"events\"; "
		  "without it what the suffix of FILE says" },
	OPTION_ROW_OUTPUT(AT(outputs),
			  "write to FILE; without it to standard output or, with a command, to standard error; - is standard output"),
};

static const struct verb_example examples[] = {
	{ "sonde stat -- make", "what make and its children take" },
	{ "sonde stat -r 5 -e cycles,instructions -- ./a.out", "five times, with the spread" },
	{ "sonde stat -a 10", "the whole machine, for ten seconds" },
	{ "sonde stat -I 1000 -p 185", "a process, each second" },
	{ "sonde stat --format json -e hardware -e software -- ls", "all such events that this machine has, as JSON" },
	{ NULL, NULL },
};

/* Parses the list of -C. Without one: all CPUs, when no command, process, thread or cgroup is given either. */
static int choose_cpus(struct stat_arguments *arguments, struct diag *diag)
{
	int err = 0;

	if (!arguments->cpu_list) {
		arguments->all_cpus |=
		    !arguments->command && !arguments->targets.tgids.nr && !arguments->targets.tids.nr && !arguments->targets.cgroup;
		return 0;
	}
	if (cpus_parse(arguments->cpu_list, &arguments->cpus))
		return diag_errno(diag, EINVAL, "-C wants CPUs, ascending, such as 0,2-3, not '%.60s'", arguments->cpu_list);
	for (uint32_t i = 0; !err && i < arguments->cpus.nr; i++)
		err = machine_check_cpu(arguments->cpus.ids[i], diag);
	if (err)
		cpus_done(&arguments->cpus);
	return err;
}

static int check(void *all, char *const *command, struct diag *diag)
{
	struct stat_arguments *arguments = all;
	/* a command beside -p or -L only sets the duration, as in perf */
	int err = target_options_check(&arguments->targets, NULL, diag);

	arguments->command = command;
	if (err)
		return err;
	if (arguments->all_cpus && (arguments->targets.tgids.nr || arguments->targets.tids.nr))
		return diag_errno(diag, EINVAL, "-a is everything: leave -%c or -a out", arguments->targets.tgids.nr ? 'p' : 'L');
	if (arguments->targets.cgroup && (arguments->targets.tgids.nr || arguments->targets.tids.nr))
		return diag_errno(diag, EINVAL, "-G and -%c exclude each other", arguments->targets.tgids.nr ? 'p' : 'L');
	if (arguments->outputs.nr > 1)
		return diag_errno(diag, EINVAL, "-o is given twice: leave one out");
	if (arguments->separator && !strcmp(arguments->separator, "\\t")) /* as in perf: shells do not pass tabs */
		arguments->separator = "\t";
	if (arguments->nr_runs > 1 && !arguments->command)
		return diag_errno(diag, EINVAL, "-r is for a command: write it behind --");
	err = plain_format_choose(arguments->format, arguments->separator || !arguments->outputs.nr ? NULL : arguments->outputs.texts[0],
				  diag, &arguments->json);
	return err ? err : choose_cpus(arguments, diag);
}

static int stat_run(void *all, const char *command_line)
{
	struct stat_arguments *arguments = all;
	int code = stat_count(arguments);

	cpus_done(&arguments->cpus);
	return code;
}

static const struct stat_arguments defaults = { .nr_runs = 1 };

const struct verb stat_verb = {
	.name = "stat",
	.summary = "counts of processors and the kernel",
	.description =
	    "Counts events while a command runs, or of processes, threads, a cgroup, CPUs or the whole machine: cycles, instructions, "
	    "cache misses, page faults, "
	    "context switches, tracepoints, and what the PMUs of this machine have. Says of each event that cannot be counted why. With "
	    "-p, -L, -G, -a or -C the command only says "
	    "for how long.\n\n"
	    "Options that perf stat has as well do what they do there, but -G is for all events. In JSON the names are those of "
	    "perf-utils: what it calls a hit is an access of any kind, hit or miss, as the kernel counts it. "
	    "time_enabled and time_running (nanoseconds) are those of the first counted event. \"events\" has all of them: name, value, "
	    "enabled_ns and running_ns, scaled (the value is an estimate), user_only (the kernel's part "
	    "may not be counted), error (why there is no value); with -r also nr_runs (in which it was counted) and deviation_percent.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.takes_command = true,
	.arguments_bytes = sizeof(struct stat_arguments),
	.defaults = &defaults,
	.check = check,
	.run = stat_run,
};
