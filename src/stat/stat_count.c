// SPDX-License-Identifier: Apache-2.0
/* sonde stat: runs a session for each run, then reads and prints its counts. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <sonde/sonde.h>

#include "base/clock.h"
#include "base/command.h"
#include "base/file.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/verbs.h"
#include "stat/stat.h"

#define MAX_OUTPUT_BYTES (64u << 20)

struct stat_run {
	const struct stat_arguments *arguments;
	struct stat_report report;
	struct sonde_count *now, *last; /* last: at the end of the last interval */
	_Atomic(struct sonde_session *) session; /* of this run */
	atomic_bool stopped;
	int code;                    /* of printing in this run */
	double run_s, user_s, system_s; /* of this run */
	int out_fd;                  /* of -o; -1: none */
	int status;                  /* the command's */
	bool has_status;
	bool has_said;
};

static void stop(void *arg)
{
	struct stat_run *run = arg;

	atomic_store(&run->stopped, true);
	sonde_session_stop(atomic_load(&run->session));
}

/* --- output --------------------------------------------------------------------------------------------------------------------------- */

static int open_output(struct stat_run *run)
{
	const struct option_texts *outputs = &run->arguments->outputs;

	if (!outputs->nr || !strcmp(outputs->texts[0], "-"))
		return SONDE_EXIT_REPORT;
	run->out_fd = open(outputs->texts[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (run->out_fd >= 0)
		return SONDE_EXIT_REPORT;
	output_say("cannot write %s: %s", outputs->texts[0], strerror(errno));
	return SONDE_EXIT_FAILED;
}

static int print(struct stat_run *run)
{
	struct buffer buffer = BUFFER_INIT(MAX_OUTPUT_BYTES);
	int code = SONDE_EXIT_REPORT, err;

	if (run->arguments->json)
		stat_json(run->arguments, &run->report, &buffer);
	else if (run->arguments->separator)
		stat_separated(run->arguments, &run->report, &buffer);
	else
		stat_text(run->arguments, &run->report, &buffer);
	if (run->out_fd < 0 && (!run->arguments->command || run->arguments->outputs.nr)) {
		code = output_result(&buffer);
	} else {
		err = buffer.err ? buffer.err : file_write(run->out_fd < 0 ? STDERR_FILENO : run->out_fd, buffer.data, buffer.size);
		if (err) {
			output_say("cannot write %s: %s", run->out_fd < 0 ? "to standard error" : run->arguments->outputs.texts[0],
				   strerror(-err));
			code = SONDE_EXIT_FAILED;
		}
	}
	buffer_done(&buffer);
	return code;
}

/* --- counting ------------------------------------------------------------------------------------------------------------------------- */

/* Reports the missing events once, where the table does not show them. */
static void say_missing(struct stat_run *run)
{
	if (run->has_said || run->arguments->json || (!run->arguments->separator && !run->arguments->interval_ms))
		return;
	for (uint32_t i = 0; i < run->report.nr; i++) {
		if (run->report.events[i].info.err)
			output_say("%s", run->report.events[i].info.error);
	}
	run->has_said = true;
}

static int take_events(struct stat_run *run)
{
	struct stat_report *report = &run->report;

	if (!report->events) {
		report->nr = sonde_counters_nr(report->set);
		report->events = calloc(report->nr, sizeof(*report->events));
		run->now = calloc(report->nr, sizeof(*run->now));
		run->last = calloc(report->nr, sizeof(*run->last));
	}
	if (!report->events || !run->now || !run->last) {
		output_say("out of memory");
		return SONDE_EXIT_FAILED;
	}
	for (uint32_t i = 0; i < report->nr; i++) {
		report->events[i].info.size = sizeof(report->events[i].info);
		if (sonde_counters_info(report->set, i, &report->events[i].info))
			return SONDE_EXIT_FAILED; /* cannot happen: every run has the same events */
	}
	say_missing(run);
	return SONDE_EXIT_REPORT;
}

/* Reads what was counted since `last`; NULL: since the start. */
static void read_counts(struct stat_run *run, const struct sonde_count *last)
{
	struct stat_report *report = &run->report;

	if (sonde_counters_read(report->set, run->now, report->nr))
		output_say("some counters cannot be read");
	for (uint32_t i = 0; i < report->nr; i++) {
		struct sonde_count count = run->now[i];

		if (last) {
			count.err = count.err ? count.err : last[i].err;
			count.value -= last[i].value;
			count.enabled_ns -= last[i].enabled_ns;
			count.running_ns -= last[i].running_ns;
			report->events[i] = (struct stat_event){ .info = report->events[i].info };
		}
		if (!run->arguments->no_scale)
			sonde_count_scale(&count);
		stat_add(&report->events[i], &count);
	}
	memcpy(run->last, run->now, report->nr * sizeof(*run->now));
}

static int print_interval(struct stat_run *run)
{
	struct stat_report *report = &run->report;
	int code;

	read_counts(run, run->last);
	report->at_s = run->run_s;
	code = print(run);
	report->at_s = -1;
	return code;
}

static void take_interval(void *arg, const struct sonde_window *window)
{
	struct stat_run *run = arg;

	run->report.interval_s = (double)window->duration_ns / NS_PER_S;
	run->run_s += run->report.interval_s;
	if (!run->arguments->interval_ms || run->code != SONDE_EXIT_REPORT)
		return;
	run->code = print_interval(run);
	if (run->code != SONDE_EXIT_REPORT)
		sonde_session_stop(atomic_load(&run->session));
}

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void say_warnings(struct sonde_session *session)
{
	const char *text;

	while ((text = sonde_session_warning(session)))
		output_say("%s", text);
}

/* Returns an exit code; failures have been reported. */
static int count_to_end(struct stat_run *run, struct sonde_session *session)
{
	struct rusage before, after;
	int err;

	getrusage(RUSAGE_CHILDREN, &before);
	err = sonde_session_run(session);
	getrusage(RUSAGE_CHILDREN, &after);
	run->user_s = seconds_of(after.ru_utime) - seconds_of(before.ru_utime);
	run->system_s = seconds_of(after.ru_stime) - seconds_of(before.ru_stime);
	say_warnings(session);
	if (!err)
		return run->code;
	output_say("%s", sonde_session_error(session));
	return sonde_session_exit_code(session);
}

/* A run that was cut short does not count with the others. */
static int end_run(struct stat_run *run, struct sonde_session *session)
{
	struct stat_report *report = &run->report;

	run->has_status = sonde_session_command_status(session, &run->status) && (WIFEXITED(run->status) || !atomic_load(&run->stopped));
	report->goes_on = sonde_session_command_goes_on(session);
	if (run->arguments->interval_ms)
		return SONDE_EXIT_REPORT;
	if (atomic_load(&run->stopped) && report->nr_runs) {
		output_say("run %" PRIu32 " was cut short, and is left out", report->nr_runs + 1);
		return SONDE_EXIT_REPORT;
	}
	report->nr_runs++;
	read_counts(run, NULL);
	stat_add_to_mean(run->run_s, report->nr_runs, &report->elapsed_s, &report->elapsed_squares);
	report->user_s += (run->user_s - report->user_s) / report->nr_runs;
	report->system_s += (run->system_s - report->system_s) / report->nr_runs;
	return SONDE_EXIT_REPORT;
}

static void forget_session(struct stat_run *run)
{
	struct sonde_session *session = atomic_exchange(&run->session, NULL);

	run->report.set = NULL;
	sonde_session_free(session);
}

static int count_once(struct stat_run *run)
{
	struct sonde_session *session = NULL;
	int code;

	forget_session(run);
	run->code = SONDE_EXIT_REPORT;
	run->run_s = 0;
	run->has_status = false;
	code = stat_open(run->arguments, &run->report, take_interval, run, &session);
	atomic_store(&run->session, session);
	if (atomic_load(&run->stopped)) /* before the session could be stopped */
		sonde_session_stop(session);
	if (code == SONDE_EXIT_REPORT)
		code = take_events(run);
	if (code == SONDE_EXIT_REPORT)
		code = count_to_end(run, session);
	return code == SONDE_EXIT_REPORT ? end_run(run, session) : code;
}

/* The command's own failure is passed on. */
static int status_code(const struct stat_run *run)
{
	return run->has_status ? command_exit_code(run->status) : SONDE_EXIT_REPORT;
}

static int count_all(struct stat_run *run)
{
	int code = open_output(run);

	signals_stop(stop, run);
	for (uint64_t i = 0; code == SONDE_EXIT_REPORT && i < run->arguments->nr_runs && !atomic_load(&run->stopped); i++)
		code = count_once(run);
	signals_report();
	if (code == SONDE_EXIT_REPORT && !run->arguments->interval_ms) {
		run->report.interval_s = run->report.elapsed_s;
		code = print(run);
	}
	signals_done();
	return code == SONDE_EXIT_REPORT ? status_code(run) : code;
}

int stat_count(const struct stat_arguments *arguments)
{
	struct stat_run run = { .arguments = arguments, .out_fd = -1, .report.at_s = -1 };
	int code = count_all(&run);

	forget_session(&run);
	closep(&run.out_fd);
	free(run.report.events);
	free(run.now);
	free(run.last);
	return code;
}
