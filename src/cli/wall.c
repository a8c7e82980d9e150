// SPDX-License-Identifier: Apache-2.0
/* sonde wall: all of the threads' time. */
#include "cli/recording.h"
#include "cli/verbs.h"

struct wall_arguments {
	struct recording recording;
	uint64_t freq_hz; /* 0: not given */
};

#define FIELD(field) .offset = offsetof(struct wall_arguments, field)

static const struct option_spec options[] = {
	{ .group = "What is measured",
	  .metavar = "DURATION",
	  .kind = OPTION_NUMBER,
	  FIELD(recording.duration_s),
	  .min = 1,
	  .max = RECORDING_MAX_DURATION_S,
	  .help = "seconds; without it until Ctrl-C or the end of what is measured" },
	RECORDING_WINDOW_OPTIONS(struct wall_arguments, recording),
	{ .letter = 'F',
	  .name = "frequency",
	  .metavar = "HZ",
	  .kind = OPTION_NUMBER,
	  FIELD(freq_hz),
	  .min = 1,
	  .max = RECORDING_MAX_FREQ_HZ,
	  .help = "samples per second and CPU, among whose stacks the time on CPUs is shared; 49" },
	RECORDING_STACK_OPTIONS(struct wall_arguments, recording),
	RECORDING_PERF_MAP_OPTION(struct wall_arguments, recording),

	TARGET_OPTIONS(struct wall_arguments, recording.targets),

	RECORDING_OUTPUT_OPTIONS(struct wall_arguments, recording),
	RECORDING_EVENTS_OPTION(struct wall_arguments, recording),
};

static const struct verb_example examples[] = {
	{ "sonde wall -p 185 5", "where process 185 spends 5 seconds of each of its threads" },
	{ "sonde wall -f -p 185 5", "folded, for flame graphs" },
	{ "sonde wall -L 186,187 5", "only these threads" },
	{ "sonde wall -G system.slice/ssh.service 5", "all threads of a service" },
	{ "sonde wall -o x.html -- make", "a command from its start to its end, as a flame graph for the browser" },
	{ NULL, NULL },
};

static int check(void *all, char *const *command, struct diag *diag)
{
	struct wall_arguments *arguments = all;

	arguments->recording.command = command;
	return recording_check(&arguments->recording, diag);
}

static int wall_run(void *all, const char *command_line)
{
	const struct wall_arguments *arguments = all;
	const struct sonde_sampling_options sampling = { .size = sizeof(sampling), .freq_hz = arguments->freq_hz };
	const struct sonde_wait_options waits = { .size = sizeof(waits), .events = arguments->recording.events };
	struct sonde_session_options of_library = recording_options(&arguments->recording, command_line);

	of_library.mode = SONDE_WALL;
	of_library.sampling = &sampling;
	of_library.waits = &waits;
	return recording_run(
	    &wall_verb, &arguments->recording, &of_library,
	    &(struct recording_words){ .measuring = "Measuring all time (us) of", .no_samples = "nothing of what was asked for was seen" });
}

static const struct wall_arguments defaults = { .recording.debuginfod_timeout_s = RECORDING_DEFAULT_TIMEOUT };

const struct verb wall_verb = {
	.name = "wall",
	.summary = "all of the threads' time: running, ready to run, blocked",
	.description = "Adds up all of the threads' time between their start and their end, or those of the recording: the total is "
		       "threads x elapsed. The outermost frame says "
		       "what the time was: [on-cpu], [runnable] (ready, but another thread had the CPU), or [blocked: futex], [blocked: "
		       "sleep], [blocked: disk] and so on. How "
		       "long is told by the scheduler's events, to the nanosecond; the stacks of the time on CPUs by samples, and [not "
		       "sampled] is a thread that ran too "
		       "briefly for one. [on-cpu] is by the clock on the wall: unlike a thread's CPU time it includes interrupts, and what "
		       "a host took from a virtual "
		       "machine meanwhile.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.takes_command = true,
	.arguments_bytes = sizeof(struct wall_arguments),
	.defaults = &defaults,
	.check = check,
	.run = wall_run,
};
