// SPDX-License-Identifier: Apache-2.0
#include "cli/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/command.h"
#include "cli/output.h"
#include "cli/signals.h"

#define NS_PER_S UINT64_C(1000000000)

/* The format for an output: --format, else by the suffix; -f turns text into folded. NULL: unknown. */
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

static int check_format(const char *format, struct diag *diag)
{
	struct buffer names = BUFFER_INIT(256);
	const char *name;

	for (uint32_t i = 0; (name = profile_write_format_at(i)); i++) {
		if (!strcmp(name, format)) {
			buffer_done(&names);
			return 0;
		}
		buffer_printf(&names, "%s%s", i ? ", " : "", name);
	}
	diag_errno(diag, EINVAL, "there is no format '%.60s': --format takes one of %s", format, names.data ? names.data : "");
	buffer_done(&names);
	return -EINVAL;
}

/* Outputs that nobody could tell apart, or whose format nobody could guess. */
static int check_outputs(const struct recording *recording, struct diag *diag)
{
	for (uint32_t i = 0; i < recording->outputs.nr; i++) {
		const char *path = recording->outputs.texts[i];

		if (!format_of(recording, path)) {
			struct buffer known = BUFFER_INIT(512);
			const char *suffixes, *text;

			for (uint32_t k = 0; sonde_format_name(k, &suffixes, &text); k++)
				buffer_printf(&known, "%s%s", k ? " " : "", suffixes);
			diag_errno(diag, EINVAL, "the suffix of '%.80s' names no format: use one of %s, or --format", path,
				   known.data ? known.data : "");
			buffer_done(&known);
			return -EINVAL;
		}
		for (uint32_t k = 0; k < i; k++) {
			if (!strcmp(path, recording->outputs.texts[k]))
				return diag_errno(diag, EINVAL, "-o '%.80s' is given twice: leave one out", path);
		}
	}
	return 0;
}

/* The events and the report in one file would be neither. */
static int check_events(const struct recording *recording, struct diag *diag)
{
	if (!strcmp(recording->events, "-") && !recording->outputs.nr)
		return diag_errno(diag, EINVAL, "--events - writes to standard output, and so does the report: give the report a file with -o FILE");
	for (uint32_t i = 0; i < recording->outputs.nr; i++) {
		if (!strcmp(recording->events, recording->outputs.texts[i]))
			return diag_errno(diag, EINVAL, "--events and -o both name '%.80s': give each a file of its own", recording->events);
	}
	return 0;
}

int recording_check(const struct recording *recording, struct diag *diag)
{
	int err = whose_check(&recording->whose, recording->command, diag);

	if (!err && recording->format)
		err = check_format(recording->format, diag);
	if (!err)
		err = check_outputs(recording, diag);
	return err || !recording->events ? err : check_events(recording, diag);
}

void recording_header_end(const struct recording *recording, struct buffer *buffer)
{
	if (recording->duration_s)
		buffer_printf(buffer, " for %" PRIu64 " secs.\n", recording->duration_s);
	else
		buffer_text(buffer, "... Hit Ctrl-C to end.\n");
}

void recording_command_line(int argc, char **argv, struct buffer *buffer)
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

static void show_waits(void *arg, uint64_t elapsed_ns, uint64_t nr_waits)
{
	output_progress("%" PRIu64 " s, %" PRIu64 " waits", elapsed_ns / NS_PER_S, nr_waits);
}

/* As the library has it: 0 is its default. */
static int64_t timeout_ns(uint64_t timeout_s)
{
	if (timeout_s == RECORDING_DEFAULT_TIMEOUT)
		return 0;
	return timeout_s ? (int64_t)(timeout_s * NS_PER_S) : -1;
}

struct sonde_profile_options recording_options(const struct recording *recording)
{
	return (struct sonde_profile_options){
		.size = sizeof(struct sonde_profile_options),
		.duration_ns = recording->duration_s * NS_PER_S,
		.tgids = recording->whose.tgids.nr ? recording->whose.tgids.ids : NULL,
		.tids = recording->whose.tids.nr ? recording->whose.tids.ids : NULL,
		.nr_tgids = recording->whose.tgids.nr,
		.nr_tids = recording->whose.tids.nr,
		.comm = recording->whose.comm,
		.cgroup = recording->whose.cgroup,
		.cpu = -1,
		.user_only = recording->user_only,
		.kernel_only = recording->kernel_only,
		.stack_storage = recording->stack_storage,
		.unwind_bytes = recording->unwind_mib << 20,
		.no_unwind_cache = recording->no_unwind_cache,
		.command = recording->command,
		.delimited = recording->delimited,
		.annotate = recording->annotate,
		.offsets = recording->offsets,
		.threads = recording->threads,
		.lines = recording->lines,
		.no_lines = recording->no_lines,
		.debuginfod_timeout_ns = timeout_ns(recording->debuginfod_timeout_s),
		.vmlinux = recording->vmlinux,
		.events = recording->events,
	};
}

/* Says why the session failed; the exit code. */
static int session_failed(const struct verb *verb, const struct sonde_session *session, int err)
{
	const char *text = session ? sonde_session_error(session) : NULL;
	int code = session ? sonde_session_exit_code(session) : SONDE_EXIT_FAILED;

	if (code == SONDE_EXIT_USAGE && text && *text)
		return output_usage(verb, text);
	output_say("%s", text && *text ? text : strerror(-err));
	return code == SONDE_EXIT_REPORT || code == SONDE_EXIT_NO_SAMPLES ? SONDE_EXIT_FAILED : code;
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

static void print_header(const struct recording *recording, const char *header, struct sonde_session *session)
{
	const char *warning;

	while ((warning = sonde_session_warning(session)))
		output_say("%s", warning);
	if (!recording->folded && header)
		output_talk(header);
}

/* A command's own failure is passed on; else the session's verdict. */
static int report_code(const struct sonde_session *session)
{
	int status = 0, code = sonde_session_command_status(session, &status) ? command_exit_code(status) : 0;

	return code ? code : sonde_session_exit_code(session);
}

static void stop(void *session)
{
	sonde_session_stop(session);
}

static int take_profile(const struct verb *verb, const struct recording *recording, const struct recording_words *words, struct sonde_session *session)
{
	int err = add_outputs(recording, session);

	if (err < 0)
		return session_failed(verb, session, err);
	signals_stop(stop, session);
	print_header(recording, words->header, session);
	err = sonde_session_run(session);
	output_progress_done();
	signals_report();
	if (err < 0)
		return session_failed(verb, session, err);
	err = sonde_session_write(session);
	output_talk(sonde_session_account(session));
	if (err < 0)
		return session_failed(verb, session, err);
	if (sonde_session_exit_code(session) == SONDE_EXIT_NO_SAMPLES)
		output_say("no samples: %s", words->no_samples);
	return report_code(session);
}

int recording_run(const struct verb *verb, const struct recording *recording, const struct sonde_profile_options *options, const struct recording_words *words)
{
	struct sonde_profile_options shown = *options;
	struct sonde_session *session = NULL;
	int err, code;

	if (output_progress_wanted())
		shown.progress = options->question == SONDE_OFF_CPU ? show_waits : show_progress;
	err = sonde_session_new(&shown, &session);
	code = err < 0 ? session_failed(verb, session, err) : take_profile(verb, recording, words, session);
	signals_done();
	sonde_session_free(session);
	return code;
}
