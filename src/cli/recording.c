// SPDX-License-Identifier: Apache-2.0
#include "cli/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/session_end.h"
#include "cli/signals.h"


/* The format for an output: --format, else by the suffix. -f turns text into folded. NULL: unknown. */
static const char *format_of(const struct recording *recording, const char *path)
{
	const char *name, *plain = recording->folded ? "folded" : "text";

	if (recording->format)
		return recording->format;
	if (!strcmp(path, "-"))
		return plain;
	name = sonde_format_by_path(path);
	if (!name)
		return recording->folded ? plain : NULL;
	return strcmp(name, "text") ? name : plain;
}

/* Events and report cannot share a file. */
static int check_events(const struct recording *recording, struct diag *diag)
{
	if (!strcmp(recording->events, "-") && !recording->outputs.nr)
		return diag_errno(diag, EINVAL,
				  "--events - writes to standard output, and so does the report: give the report a file with -o FILE");
	for (uint32_t i = 0; i < recording->outputs.nr; i++) {
		if (!strcmp(recording->events, recording->outputs.texts[i]))
			return diag_errno(diag, EINVAL, "--events and -o both name '%.80s': give each a file of its own",
					  recording->events);
	}
	return 0;
}

int recording_check(const struct recording *recording, struct diag *diag)
{
	const char *format = recording->format || !recording->folded ? recording->format : "folded";
	int err = target_options_check(&recording->targets, recording->command, diag);

	if (!err)
		err = runtimes_option_check(recording->runtimes, diag);
	if (!err && recording->perf_map && !recording->targets.tgids.nr)
		err = diag_errno(diag, EINVAL, "--perf-map writes a file for each process: name them with -p PID");
	if (!err)
		err = profile_check_outputs(&recording->outputs, format, diag);
	return err || !recording->events ? err : check_events(recording, diag);
}

/* Progress on a terminal: the time so far and the number of samples. */
static void show_progress(void *arg, uint64_t elapsed_ns, uint64_t nr_samples)
{
	output_progress("%" PRIu64 " s, %" PRIu64 " samples", elapsed_ns / NS_PER_S, nr_samples);
}

static void show_waits(void *arg, uint64_t elapsed_ns, uint64_t nr_waits)
{
	output_progress("%" PRIu64 " s, %" PRIu64 " waits", elapsed_ns / NS_PER_S, nr_waits);
}

/* In the library's form, where 0 is the default and -1 is none. */
static int64_t timeout_ns(uint64_t timeout_s)
{
	if (timeout_s == RECORDING_DEFAULT_TIMEOUT)
		return 0;
	return timeout_s ? (int64_t)(timeout_s * NS_PER_S) : -1;
}

struct sonde_session_options recording_options(const struct recording *recording, const char *command_line)
{
	return (struct sonde_session_options){
		.size = sizeof(struct sonde_session_options),
		.duration_ns = recording->duration_s * NS_PER_S,
		.every_ns = recording->every_s * NS_PER_S,
		.keep = (uint32_t)recording->keep,
		.tgids = recording->targets.tgids.nr ? recording->targets.tgids.ids : NULL,
		.tids = recording->targets.tids.nr ? recording->targets.tids.ids : NULL,
		.nr_tgids = recording->targets.tgids.nr,
		.nr_tids = recording->targets.tids.nr,
		.comm = recording->targets.comm,
		.cgroup = recording->targets.cgroup,
		.user_only = recording->user_only,
		.kernel_only = recording->kernel_only,
		.stack_storage = recording->stack_storage,
		.unwind_bytes = recording->unwind_mib << 20,
		.no_unwind_cache = recording->no_unwind_cache,
		.runtimes = recording->runtimes,
		.perf_map = recording->perf_map,
		.command = recording->command,
		.command_line = command_line,
		.delimited = recording->delimited,
		.annotate = recording->annotate,
		.offsets = recording->offsets,
		.threads = recording->threads,
		.lines = recording->lines,
		.no_lines = recording->no_lines,
		.source_lines = (uint32_t)recording->source_lines,
		.debuginfod_timeout_ns = timeout_ns(recording->debuginfod_timeout_s),
		.vmlinux = recording->vmlinux,
	};
}

static int add_outputs(const struct recording *recording, struct sonde_session *session)
{
	int err = 0;

	if (!recording->outputs.nr)
		return sonde_session_add_output(session, "-", format_of(recording, "-"));
	for (uint32_t i = 0; !err && i < recording->outputs.nr; i++) {
		const char *path = recording->outputs.texts[i];

		err = sonde_session_add_output(session, path, format_of(recording, path));
	}
	return err;
}

static void print_warnings(struct sonde_session *session)
{
	const char *warning;

	while ((warning = sonde_session_warning(session)))
		output_say("%s", warning);
}

/* In memleak's words. */
static void print_attached(const struct recording *recording)
{
	struct buffer header = BUFFER_INIT(1 << 17);

	buffer_text(&header, "Attaching to ");
	for (uint32_t i = 0; i < recording->targets.tgids.nr; i++)
		buffer_printf(&header, "%s%" PRIu32, i ? "," : "pid ", recording->targets.tgids.ids[i]);
	if (recording->command)
		buffer_text(&header, recording->command[0]);
	else if (!recording->targets.tgids.nr)
		target_options_text(&recording->targets, NULL, &header);
	buffer_text(&header, ", Ctrl+C to quit.\n");
	if (!header.err)
		output_talk(header.data);
	buffer_done(&header);
}

/* In the words of BCC's tools. */
static void print_header(const struct recording *recording, const struct recording_words *words)
{
	struct buffer header = BUFFER_INIT(1 << 17);

	if (recording->folded || words->is_attached) /* memleak's is printed when the probes are in place */
		return;
	buffer_printf(&header, "%s ", words->measuring);
	target_options_text(&recording->targets, recording->command, &header);
	if (words->threads)
		buffer_printf(&header, " (%s threads)", words->threads);
	buffer_printf(&header, " by %s stack", recording->user_only ? "user" : recording->kernel_only ? "kernel" : "user + kernel");
	if (words->place)
		buffer_printf(&header, " on %s", words->place);
	if (recording->duration_s)
		buffer_printf(&header, " for %" PRIu64 " secs.\n", recording->duration_s);
	else
		buffer_text(&header, "... Hit Ctrl-C to end.\n");
	if (!header.err)
		output_talk(header.data);
	buffer_done(&header);
}

struct running { /* for the callbacks */
	const struct recording *recording;
	struct sonde_session *session;
};

#define ASKS_FROM 2.0 /* times as slow */

/* "yes", and no end of the input */
static bool is_agreed(void)
{
	char answer[64];

	fputs("Go on? [y/N] ", stderr);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int print_expected(void *arg, const struct sonde_expected *expected)
{
	const struct running *running = arg;

	if (expected->calls_per_s < 1)
		return 0;
	output_say("about %.0f calls of allocators a second: expected to need %s%.1f times as much CPU time", expected->calls_per_s,
		   expected->is_least ? "at least " : "", expected->slow_down);
	if (expected->slow_down <= ASKS_FROM || running->recording->yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return 0;
	return is_agreed() ? 0 : 1;
}

static void print_started(void *arg)
{
	const struct running *running = arg;

	print_attached(running->recording);
}

/* Prints the messages of a window; its reports go elsewhere. */
static void print_window(void *arg, const struct sonde_window *window)
{
	const struct running *running = arg;

	output_progress_done();
	print_warnings(running->session);
	if (window->err)
		output_say("window %" PRIu32 " was not written: %s", window->number, strerror(-window->err));
}

static int take_profile(const struct verb *verb, const struct recording *recording, const struct recording_words *words,
			struct sonde_session *session)
{
	int err = add_outputs(recording, session);

	if (err < 0)
		return session_failed(verb, session, err);
	signals_stop(session_stop, session);
	print_warnings(session);
	print_header(recording, words);
	err = sonde_session_run(session);
	output_progress_done();
	signals_report();
	if (err < 0)
		return session_failed(verb, session, err);
	err = sonde_session_write(session);
	output_talk(recording->every_s ? sonde_session_total(session) : sonde_session_account(session));
	if (err < 0)
		return session_failed(verb, session, err);
	if (sonde_session_exit_code(session) == SONDE_EXIT_NO_SAMPLES)
		output_say("no samples: %s", words->no_samples);
	return session_code(session);
}

int recording_run(const struct verb *verb, const struct recording *recording, const struct sonde_session_options *options,
		  const struct recording_words *words)
{
	struct sonde_session_options shown = *options;
	struct running running = { .recording = recording };
	int err, code;

	shown.window = print_window;
	shown.started = words->is_attached && !recording->folded ? print_started : NULL;
	shown.expected = print_expected;
	shown.arg = &running;
	if (output_progress_wanted())
		shown.progress = options->mode == SONDE_OFF_CPU ? show_waits : show_progress;
	err = sonde_session_new(&shown, &running.session);
	code = err < 0 ? session_failed(verb, running.session, err) : take_profile(verb, recording, words, running.session);
	signals_done();
	sonde_session_free(running.session);
	return code;
}
