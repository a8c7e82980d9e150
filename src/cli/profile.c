// SPDX-License-Identifier: Apache-2.0
/* sonde profile: one session from the command line to the report. */
#include "cli/profile.h"

#include "cli/output.h"

#define AUDIT_EVERY 1000 /* cheap enough for production */

static struct sonde_profile_options to_options(const struct profile_arguments *arguments)
{
	struct sonde_profile_options options = recording_options(&arguments->recording);

	options.event = arguments->event;
	options.no_fallback = arguments->no_fallback;
	options.freq_hz = arguments->freq_hz;
	options.period = arguments->period;
	options.cpu = arguments->cpu == PROFILE_ALL_CPUS ? -1 : (int64_t)arguments->cpu;
	options.idle = arguments->idle;
	options.audit_every = (uint32_t)(arguments->audit && !arguments->audit_every ? AUDIT_EVERY : arguments->audit_every);
	options.timestamps = arguments->timestamps;
	return options;
}

static int print_source(const struct profile_arguments *arguments)
{
	struct sonde_profile_options options = to_options(arguments);
	struct buffer source = BUFFER_INIT(16 << 20);
	int code;

	buffer_text(&source, sonde_profile_source(&options));
	code = output_result(&source);
	buffer_done(&source);
	return code;
}

static int record(const struct verb *verb, const struct profile_arguments *arguments, const char *command_line)
{
	struct sonde_profile_options options = to_options(arguments);
	struct buffer header = BUFFER_INIT(1 << 17);
	int code;

	options.command_line = command_line;
	profile_header(arguments, &header);
	code = recording_run(verb, &arguments->recording, &options,
			     &(struct recording_words){ .header = header.err ? NULL : header.data, .no_samples = "nothing of what was asked for ran on a CPU" });
	buffer_done(&header);
	return code;
}

int profile_run(const struct verb *verb, int argc, char **argv)
{
	struct profile_arguments arguments = { .cpu = PROFILE_ALL_CPUS, .recording.debuginfod_timeout_s = RECORDING_DEFAULT_TIMEOUT };
	struct buffer command_line = BUFFER_INIT(4 << 20);
	struct option_result result;
	struct diag diag = { 0 };
	int err, code;

	err = option_parse(verb, argc, argv, &arguments, &result, &diag);
	if (!err && (result.help || result.version))
		return output_help(verb, &result);
	if (!err) {
		arguments.recording.command = result.command;
		err = profile_check(&arguments, &diag);
	}
	if (err)
		return output_usage(verb, diag.text);
	if (arguments.ebpf)
		return print_source(&arguments);
	recording_command_line(argc, argv, &command_line);
	code = record(verb, &arguments, command_line.data);
	buffer_done(&command_line);
	return code;
}
