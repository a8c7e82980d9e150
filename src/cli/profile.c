// SPDX-License-Identifier: Apache-2.0
/* sonde profile: one session from the command line to the report. */
#include "cli/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/output.h"
#include "cli/signals.h"
#include "cli/verbs.h"

#define AUDIT_EVERY 1000 /* cheap enough for production */
#define NS_PER_S UINT64_C(1000000000)

static void join_words(int argc, char **argv, struct buffer *buffer)
{
	buffer_text(buffer, "sonde");
	for (int i = 0; i < argc; i++)
		buffer_printf(buffer, " %s", argv[i]);
}

/* Once a second, on a terminal: that it runs, and what it has. */
static void show_progress(void *arg, uint64_t elapsed_ns, uint64_t nr_samples)
{
	output_progress("%" PRIu64 " s, %" PRIu64 " samples", elapsed_ns / NS_PER_S, nr_samples);
}

/* As the library has it: 0 is its default. */
static int64_t timeout_ns(uint64_t timeout_s)
{
	if (timeout_s == PROFILE_DEFAULT_TIMEOUT)
		return 0;
	return timeout_s ? (int64_t)(timeout_s * NS_PER_S) : -1;
}

static struct sonde_profile_options to_options(const struct profile_arguments *arguments, const char *command_line)
{
	return (struct sonde_profile_options){
		.size = sizeof(struct sonde_profile_options),
		.command_line = command_line,
		.event = arguments->event,
		.no_fallback = arguments->no_fallback,
		.freq_hz = arguments->freq_hz,
		.period = arguments->period,
		.duration_ns = arguments->duration_s * NS_PER_S,
		.tgids = arguments->tgids.nr ? arguments->tgids.ids : NULL,
		.tids = arguments->tids.nr ? arguments->tids.ids : NULL,
		.nr_tgids = arguments->tgids.nr,
		.nr_tids = arguments->tids.nr,
		.comm = arguments->comm,
		.cpu = arguments->cpu == PROFILE_ALL_CPUS ? -1 : (int64_t)arguments->cpu,
		.idle = arguments->idle,
		.user_only = arguments->user_only,
		.kernel_only = arguments->kernel_only,
		.stack_storage = arguments->stack_storage,
		.unwind_bytes = arguments->unwind_mib << 20,
		.no_unwind_cache = arguments->no_unwind_cache,
		.audit_every = (uint32_t)(arguments->audit && !arguments->audit_every ? AUDIT_EVERY : arguments->audit_every),
		.command = arguments->command,
		.delimited = arguments->delimited,
		.annotate = arguments->annotate,
		.offsets = arguments->offsets,
		.threads = arguments->threads,
		.timestamps = arguments->timestamps,
		.lines = arguments->lines,
		.no_lines = arguments->no_lines,
		.debuginfod_timeout_ns = timeout_ns(arguments->debuginfod_timeout_s),
		.vmlinux = arguments->vmlinux,
		.progress = output_progress_wanted() ? show_progress : NULL,
	};
}

/* Says why the session failed; the exit code. */
static int session_failed(const struct sonde_session *session, int err)
{
	const char *text = session ? sonde_session_error(session) : NULL;
	int code = session ? sonde_session_exit_code(session) : SONDE_EXIT_FAILED;

	if (code == SONDE_EXIT_USAGE && text && *text)
		return output_usage(&profile_verb, text);
	output_say("%s", text && *text ? text : strerror(-err));
	return code == SONDE_EXIT_REPORT || code == SONDE_EXIT_NO_SAMPLES ? SONDE_EXIT_FAILED : code;
}

static int add_outputs(const struct profile_arguments *arguments, struct sonde_session *session)
{
	int err = 0;

	if (!arguments->outputs.nr)
		return sonde_session_add_output(session, "-", profile_format(arguments, "-"));
	for (uint32_t i = 0; !err && i < arguments->outputs.nr; i++) {
		const char *path = arguments->outputs.texts[i];

		err = sonde_session_add_output(session, path, profile_format(arguments, path));
	}
	return err;
}

static void print_header(const struct profile_arguments *arguments, struct sonde_session *session)
{
	struct buffer header = BUFFER_INIT(1 << 17);
	const char *warning;

	while ((warning = sonde_session_warning(session)))
		output_say("%s", warning);
	profile_header(arguments, &header);
	if (!arguments->folded && !header.err)
		output_talk(header.data);
	buffer_done(&header);
}

/* A command's own failure is passed on, as a shell would; else the session's verdict. */
static int report_code(const struct sonde_session *session)
{
	int status = 0;

	if (sonde_session_command_status(session, &status)) {
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		if (WIFEXITED(status) && WEXITSTATUS(status))
			return WEXITSTATUS(status);
	}
	return sonde_session_exit_code(session);
}

static int take_profile(const struct profile_arguments *arguments, struct sonde_session *session)
{
	int err = add_outputs(arguments, session);

	if (err < 0)
		return session_failed(session, err);
	signals_stop(session);
	print_header(arguments, session);
	err = sonde_session_run(session);
	output_progress_done();
	signals_report();
	if (err < 0)
		return session_failed(session, err);
	err = sonde_session_write(session);
	output_talk(sonde_session_account(session));
	if (err < 0)
		return session_failed(session, err);
	if (sonde_session_exit_code(session) == SONDE_EXIT_NO_SAMPLES)
		output_say("no samples: nothing of what was asked for ran on a CPU");
	return report_code(session);
}

static int run_session(const struct profile_arguments *arguments, const char *command_line)
{
	struct sonde_profile_options options = to_options(arguments, command_line);
	struct sonde_session *session = NULL;
	int err = sonde_session_new(&options, &session);
	int code = err < 0 ? session_failed(session, err) : take_profile(arguments, session);

	signals_done();
	sonde_session_free(session);
	return code;
}

static int print_source(const struct profile_arguments *arguments)
{
	struct sonde_profile_options options = to_options(arguments, NULL);
	struct buffer source = BUFFER_INIT(16 << 20);
	int code;

	buffer_text(&source, sonde_profile_source(&options));
	code = output_result(&source);
	buffer_done(&source);
	return code;
}

int profile_run(const struct verb *verb, int argc, char **argv)
{
	struct profile_arguments arguments = { .cpu = PROFILE_ALL_CPUS, .debuginfod_timeout_s = PROFILE_DEFAULT_TIMEOUT };
	struct buffer command_line = BUFFER_INIT(4 << 20);
	struct option_result result;
	struct diag diag = { 0 };
	int err, code;

	err = option_parse(verb, argc, argv, &arguments, &result, &diag);
	if (!err && (result.help || result.version))
		return output_help(verb, &result);
	if (!err) {
		arguments.command = result.command;
		err = profile_check(&arguments, &diag);
	}
	if (err)
		return output_usage(verb, diag.text);
	if (arguments.ebpf)
		return print_source(&arguments);
	join_words(argc, argv, &command_line);
	code = run_session(&arguments, command_line.data);
	buffer_done(&command_line);
	return code;
}
