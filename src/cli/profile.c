// SPDX-License-Identifier: Apache-2.0
/* sonde profile: the letters, names and meanings of BCC's profile, with additions. */
#include <inttypes.h>

#include "cli/machine.h"
#include "cli/output.h"
#include "cli/recording.h"
#include "cli/verbs.h"

#define AUDIT_EVERY 1000 /* cheap enough for production */
#define ALL_CPUS    UINT64_MAX

struct profile_arguments {
	struct recording recording;
	uint64_t cpu;             /* ALL_CPUS: all */
	bool idle;
	uint64_t freq_hz, period; /* 0: not given */
	const char *event;
	bool no_fallback;
	bool audit;
	uint64_t audit_every;     /* 0: not given */
	bool timestamps;
	bool ebpf;
};

#define FIELD(field) .offset = offsetof(struct profile_arguments, field)

static const struct option_spec options[] = {
	{ .group = "What is sampled",
	  .metavar = "DURATION",
	  .kind = OPTION_NUMBER,
	  FIELD(recording.duration_s),
	  .min = 1,
	  .max = RECORDING_MAX_DURATION_S,
	  .help = "seconds; without it until Ctrl-C or the end of what is sampled" },
	RECORDING_WINDOW_OPTIONS(struct profile_arguments, recording),
	{ .letter = 'F',
	  .name = "frequency",
	  .metavar = "HZ",
	  .kind = OPTION_NUMBER,
	  FIELD(freq_hz),
	  .min = 1,
	  .max = RECORDING_MAX_FREQ_HZ,
	  .help = "samples per second and CPU; 49 unless -c is given" },
	{ .letter = 'c',
	  .name = "count",
	  .metavar = "N",
	  .kind = OPTION_NUMBER,
	  FIELD(period),
	  .min = 1,
	  .max = INT64_MAX,
	  .excludes = "frequency",
	  .instead = "give the rate (-F) or the number of events between two samples (-c)",
	  .help = "sample every N events instead; one event of cpu-clock is a nanosecond" },
	{ .letter = 'e',
	  .name = "event",
	  .metavar = "EVENT",
	  .kind = OPTION_TEXT,
	  FIELD(event),
	  .help = "what drives the sampling, by perf's names: cpu-clock (default), cycles, instructions, page-faults and others" },
	{ .name = "no-fallback",
	  .kind = OPTION_FLAG,
	  FIELD(no_fallback),
	  .help = "refuse an event that this machine lacks; otherwise cpu-clock takes its place, with a warning" },
	{ .letter = 'I', .name = "include-idle", .kind = OPTION_FLAG, FIELD(idle), .help = "also CPUs that do nothing" },
	RECORDING_STACK_OPTIONS(struct profile_arguments, recording),
	RECORDING_PERF_MAP_OPTION(struct profile_arguments, recording),

	TARGET_OPTIONS(struct profile_arguments, recording.targets),
	{ .letter = 'C',
	  .name = "cpu",
	  .metavar = "CPU",
	  .kind = OPTION_NUMBER,
	  FIELD(cpu),
	  .max = INT32_MAX,
	  .help = "only what runs on this CPU; the first is 0" },

	RECORDING_OUTPUT_OPTIONS(struct profile_arguments, recording),
	{ .name = "timestamps",
	  .kind = OPTION_FLAG,
	  FIELD(timestamps),
	  .help = "record the time of each sample, for the formats that can carry it" },

	{ .group = "For the curious",
	  .name = "audit",
	  .kind = OPTION_FLAG,
	  FIELD(audit),
	  .help = "unwind one of every 1000 user stacks once more, by libdw, and say how many agree" },
	{ .name = "audit-every",
	  .metavar = "N",
	  .kind = OPTION_NUMBER,
	  FIELD(audit_every),
	  .min = 1,
	  .max = UINT32_MAX,
	  .help = "audit one of every N user stacks instead" },
	{ .name = "ebpf",
	  .kind = OPTION_FLAG,
	  FIELD(ebpf),
	  .help = "print the source of the BPF programs that this command line would load, and end" },
};

static const struct verb_example examples[] = {
	{ "sonde profile", "everything, at 49 Hertz, until Ctrl-C" },
	{ "sonde profile -F 99", "at 99 Hertz" },
	{ "sonde profile -c 1000000", "a sample every 1000000 events" },
	{ "sonde profile 5", "for 5 seconds" },
	{ "sonde profile -f 5", "folded, for flame graphs" },
	{ "sonde profile -p 185", "only process 185" },
	{ "sonde profile -L 185", "only thread 185" },
	{ "sonde profile -U", "only user stacks" },
	{ "sonde profile -K", "only kernel stacks" },
	{ "sonde profile -o x.html 10", "a flame graph for the browser" },
	{ "sonde profile -o x.pb.gz -- make", "a command from its start to its end" },
	{ "sonde profile --every 60 -o %t.pb.gz", "a file each minute" },
	{ NULL, NULL },
};

static int check(void *all, char *const *command, struct diag *diag)
{
	struct profile_arguments *arguments = all;
	int err;

	arguments->recording.command = command;
	err = recording_check(&arguments->recording, diag);
	return err || arguments->cpu == ALL_CPUS ? err : machine_check_cpu(arguments->cpu, diag);
}

static struct sonde_session_options to_options(const struct profile_arguments *arguments, const char *command_line,
					       const struct sonde_sampling_options *sampling)
{
	struct sonde_session_options of_library = recording_options(&arguments->recording, command_line);

	of_library.sampling = sampling;
	of_library.audit_every = (uint32_t)(arguments->audit && !arguments->audit_every ? AUDIT_EVERY : arguments->audit_every);
	of_library.timestamps = arguments->timestamps;
	return of_library;
}

static int record(const struct profile_arguments *arguments, const struct sonde_session_options *of_library)
{
	char measuring[64], cpu[32];

	if (arguments->period)
		snprintf(measuring, sizeof(measuring), "Sampling at every %" PRIu64 " events of", arguments->period);
	else
		snprintf(measuring, sizeof(measuring), "Sampling at %" PRIu64 " Hertz of",
			 arguments->freq_hz ? arguments->freq_hz : SONDE_DEFAULT_FREQ_HZ);
	snprintf(cpu, sizeof(cpu), "CPU#%" PRIu64, arguments->cpu);
	return recording_run(&profile_verb, &arguments->recording, of_library,
			     &(struct recording_words){ .measuring = measuring, .place = arguments->cpu == ALL_CPUS ? NULL : cpu,
							.no_samples = "nothing of what was asked for ran on a CPU" });
}

static int profile_run(void *all, const char *command_line)
{
	const struct profile_arguments *arguments = all;
	const uint32_t cpu = (uint32_t)arguments->cpu;
	const struct sonde_sampling_options sampling = {
		.size = sizeof(sampling),
		.event = arguments->event,
		.no_fallback = arguments->no_fallback,
		.freq_hz = arguments->freq_hz,
		.period = arguments->period,
		.cpu = arguments->cpu == ALL_CPUS ? NULL : &cpu,
		.idle = arguments->idle,
	};
	const struct sonde_session_options of_library = to_options(arguments, command_line, &sampling);

	return arguments->ebpf ? output_result_text(sonde_profile_source(&of_library)) : record(arguments, &of_library);
}

static const struct profile_arguments defaults = { .cpu = ALL_CPUS, .recording.debuginfod_timeout_s = RECORDING_DEFAULT_TIMEOUT };

const struct verb profile_verb = {
	.name = "profile",
	.summary = "what runs on the CPUs",
	.description = "Samples the stacks of what runs on the CPUs, of the kernel and of every program, without asking them: no frame "
		       "pointers, no recompile, no restart. Prints each stack with the number of its samples, the hottest last.\n\n"
		       "The options are those of BCC's profile, and more.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.takes_command = true,
	.arguments_bytes = sizeof(struct profile_arguments),
	.defaults = &defaults,
	.check = check,
	.run = profile_run,
};
