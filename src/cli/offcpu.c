// SPDX-License-Identifier: Apache-2.0
/* sonde offcpu: the letters, names and meanings of BCC's offcputime and offwaketime, with additions. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "cli/recording.h"
#include "cli/verbs.h"

#define MAX_TIME_US  UINT64_C(1000000000000) /* 11 days */
#define MAX_STATE    UINT16_MAX
#define ANY_STATE    UINT64_MAX

struct offcpu_arguments {
	struct recording recording;
	uint64_t min_us, max_us; /* max 0: no limit */
	uint64_t state;          /* ANY_STATE: not given */
	bool user_threads_only, kernel_threads_only;
	const char *value;
	uint64_t max_overhead;   /* 0: not given */
	bool wake, histograms;
};

enum offcpu_value { OFFCPU_VALUE_TIME, OFFCPU_VALUE_COUNT };

static const char *value_at(uint32_t i)
{
	static const char *const values[] = { [OFFCPU_VALUE_TIME] = "time", [OFFCPU_VALUE_COUNT] = "count" };

	return i < ARRAY_SIZE(values) ? values[i] : NULL;
}

#define FIELD(field) .offset = offsetof(struct offcpu_arguments, field)

static const struct option_spec options[] = {
	{ .group = "What is measured",
	  .metavar = "DURATION",
	  .kind = OPTION_NUMBER,
	  FIELD(recording.duration_s),
	  .min = 1,
	  .max = RECORDING_MAX_DURATION_S,
	  .help = "seconds; without it until Ctrl-C or the end of what is measured" },
	RECORDING_WINDOW_OPTIONS(struct offcpu_arguments, recording),
	{ .letter = 'm',
	  .name = "min",
	  .metavar = "US",
	  .kind = OPTION_NUMBER,
	  FIELD(min_us),
	  .max = MAX_TIME_US,
	  .help = "leave out waits that are shorter, in microseconds; 1" },
	{ .letter = 'M',
	  .name = "max",
	  .metavar = "US",
	  .kind = OPTION_NUMBER,
	  FIELD(max_us),
	  .min = 1,
	  .max = MAX_TIME_US,
	  .help = "leave out waits that are longer" },
	{ .name = "state",
	  .metavar = "STATE",
	  .kind = OPTION_NUMBER,
	  FIELD(state),
	  .max = MAX_STATE,
	  .help = "only waits in one of these states, the kernel's bits: 1 interruptible, 2 uninterruptible, 4 stopped, 8 traced; 0 is for "
		  "threads that were preempted" },
	{ .name = "wake", .kind = OPTION_FLAG, FIELD(wake), .help = "also who ended the wait, with the stacks there" },
	{ .name = "max-overhead",
	  .metavar = "PCT",
	  .kind = OPTION_NUMBER,
	  FIELD(max_overhead),
	  .min = 1,
	  .max = 100,
	  .help =
	      "leave out longer and longer waits, beginning with --min, while our programs take more than so much of the machine's time" },
	{ .name = "hist",
	  .kind = OPTION_FLAG,
	  FIELD(histograms),
	  .help = "also how the durations of the waits are distributed, whole and of each stack" },
	RECORDING_STACK_OPTIONS(struct offcpu_arguments, recording),
	RECORDING_PERF_MAP_OPTION(struct offcpu_arguments, recording),

	TARGET_OPTIONS(struct offcpu_arguments, recording.targets),
	{ .letter = 'u', .name = "user-threads-only", .kind = OPTION_FLAG, FIELD(user_threads_only), .help = "no threads of the kernel" },
	{ .letter = 'k',
	  .name = "kernel-threads-only",
	  .kind = OPTION_FLAG,
	  FIELD(kernel_threads_only),
	  .excludes = "user-threads-only",
	  .instead = "leave both out to see the threads of programs and of the kernel",
	  .help = "only threads of the kernel" },

	RECORDING_OUTPUT_OPTIONS(struct offcpu_arguments, recording),
	RECORDING_EVENTS_OPTION(struct offcpu_arguments, recording),
	{ .name = "value",
	  .metavar = "WHAT",
	  .kind = OPTION_TEXT,
	  FIELD(value),
	  .value_name = value_at,
	  .help = "what formats with one number per stack show: time (default; text and folded in microseconds), or count of the waits" },
};

static const struct verb_example examples[] = {
	{ "sonde offcpu", "what all threads wait for, until Ctrl-C" },
	{ "sonde offcpu 5", "for 5 seconds" },
	{ "sonde offcpu -f 5", "folded, for flame graphs" },
	{ "sonde offcpu -p 185", "only process 185" },
	{ "sonde offcpu --min 1000 5", "only waits of a millisecond and longer" },
	{ "sonde offcpu --state 2 5", "only uninterruptible ones: disks, locks of the kernel" },
	{ "sonde offcpu --wake -p 185 5", "and who ended them" },
	{ "sonde offcpu -o x.html -- make", "a command from its start to its end, as a flame graph for the browser" },
	{ NULL, NULL },
};

static int check(void *all, char *const *command, struct diag *diag)
{
	struct offcpu_arguments *arguments = all;

	arguments->recording.command = command;
	if (arguments->max_us && arguments->max_us < arguments->min_us)
		return diag_errno(diag, EINVAL, "no wait is at least %" PRIu64 " us and at most %" PRIu64 " us long: --max is below --min",
				  arguments->min_us, arguments->max_us);
	if (strcmp(arguments->value, value_at(OFFCPU_VALUE_TIME)) != 0 && strcmp(arguments->value, value_at(OFFCPU_VALUE_COUNT)) != 0)
		return diag_errno(diag, EINVAL, "there is no value '%.60s': --value takes time or count", arguments->value);
	return recording_check(&arguments->recording, diag);
}

static struct sonde_wait_options to_options(const struct offcpu_arguments *arguments)
{
	return (struct sonde_wait_options){
		.size = sizeof(struct sonde_wait_options),
		.min_ns = arguments->min_us * NS_PER_US,
		.max_ns = arguments->max_us * NS_PER_US,
		.state = arguments->state == ANY_STATE ? 0 : arguments->state ? (int32_t)arguments->state : SONDE_STATE_PREEMPTED,
		.user_threads_only = arguments->user_threads_only,
		.kernel_threads_only = arguments->kernel_threads_only,
		.wake = arguments->wake,
		.count_waits = !strcmp(arguments->value, value_at(OFFCPU_VALUE_COUNT)),
		.histograms = arguments->histograms,
		.max_overhead_percent = (uint32_t)arguments->max_overhead,
		.events = arguments->recording.events,
	};
}

static int offcpu_run(void *all, const char *command_line)
{
	const struct offcpu_arguments *arguments = all;
	const struct sonde_wait_options waits = to_options(arguments);
	struct sonde_session_options of_library = recording_options(&arguments->recording, command_line);
	const struct recording_words words = {
		.measuring = "Tracing off-CPU time (us) of",
		.threads = arguments->user_threads_only ? "user" : arguments->kernel_threads_only ? "kernel" : NULL,
		.no_samples = "no wait of what was asked for was seen",
	};

	of_library.mode = SONDE_OFF_CPU;
	of_library.waits = &waits;
	return recording_run(&offcpu_verb, &arguments->recording, &of_library, &words);
}

static const struct offcpu_arguments defaults = {
	.min_us = 1, .state = ANY_STATE, .value = "time", .recording.debuginfod_timeout_s = RECORDING_DEFAULT_TIMEOUT
};

const struct verb offcpu_verb = {
	.name = "offcpu",
	.summary = "what threads wait for, and how long",
	.description = "Adds up, in the kernel, the time that threads are not on a CPU, by the stack with which they left it: of the "
		       "kernel and of every program, "
		       "without frame pointers. The leaf names the kind of wait: [futex], [sleep], [disk], [pipe], [socket], [epoll], "
		       "[preempted] and others. Waits that "
		       "were under way at the start or are at the end count with what is between the two.\n\n"
		       "The options are those of BCC's offcputime, and more.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.takes_command = true,
	.arguments_bytes = sizeof(struct offcpu_arguments),
	.defaults = &defaults,
	.check = check,
	.run = offcpu_run,
};
