// SPDX-License-Identifier: Apache-2.0
/* sonde stat: lets the command go or waits, reads, prints. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <sonde/sonde.h>

#include "base/clock.h"
#include "base/command.h"
#include "base/file.h"
#include "base/file_limit.h"
#include "base/small_file.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/stat.h"
#include "cli/verbs.h"

#define LOOK_EVERY_NS (20 * NS_PER_MS) /* whether what is counted has ended, when it is no child of ours */
#define MAX_OUTPUT_BYTES (64u << 20)

struct stat_run {
	const struct stat_arguments *arguments;
	struct stat_report report;
	struct sonde_count *now, *last; /* last: at the end of the last interval */
	struct command *command;
	atomic_bool stopped;
	uint64_t began_ns, last_ns, ended_ns;
	double user_s, system_s;     /* of this run */
	int out_fd;                  /* of -o; -1: none */
	int status;                  /* the command's */
	bool has_status, is_cut;     /* is_cut: this run ended because the user wanted it to */
	bool told;
};

static void stop(void *arg)
{
	atomic_store(&((struct stat_run *)arg)->stopped, true);
}

/* --- output ------------------------------------------------------------------------------------------------------------------------------------- */

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
			output_say("cannot write %s: %s", run->out_fd < 0 ? "to standard error" : run->arguments->outputs.texts[0], strerror(-err));
			code = SONDE_EXIT_FAILED;
		}
	}
	buffer_done(&buffer);
	return code;
}

/* --- counting ----------------------------------------------------------------------------------------------------------------------------------- */

/* Once, where the table does not say it. */
static void tell_missing(struct stat_run *run)
{
	if (run->told || run->arguments->json || (!run->arguments->separator && !run->arguments->interval_ms))
		return;
	for (uint32_t i = 0; i < run->report.nr; i++) {
		if (run->report.events[i].info.err)
			output_say("%s", run->report.events[i].info.error);
	}
	run->told = true;
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
			return SONDE_EXIT_FAILED; /* never: every run has the same events */
	}
	tell_missing(run);
	return SONDE_EXIT_REPORT;
}

/* What was counted since `last`. */
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

static int print_interval(struct stat_run *run, uint64_t now)
{
	struct stat_report *report = &run->report;
	int code;

	read_counts(run, run->last);
	report->at_s = (double)(now - run->began_ns) / NS_PER_S;
	report->interval_s = (double)(now - run->last_ns) / NS_PER_S;
	run->last_ns = now;
	code = print(run);
	report->at_s = -1;
	return code;
}

/* A process that nobody has waited for has ended as well. */
static bool has_ended(uint32_t pid)
{
	char path[32], text[512], *state;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (small_file_read(AT_FDCWD, path, text, sizeof(text)))
		return true;
	state = strrchr(text, ')');
	return state && state[1] && strchr("ZX", state[2]);
}

static bool all_ended(const struct option_ids *ids)
{
	for (uint32_t i = 0; i < ids->nr; i++) {
		if (!has_ended(ids->ids[i]))
			return false;
	}
	return ids->nr > 0;
}

static bool is_over(struct stat_run *run)
{
	const struct whose *whose = &run->arguments->whose;

	if (atomic_load(&run->stopped))
		return true;
	if (!run->command)
		return all_ended(whose->tgids.nr ? &whose->tgids : &whose->tids);
	run->has_status = command_ended(run->command, &run->status);
	return run->has_status;
}

/* Until the end of what is counted, of the time or of the user's patience; with what each interval had. */
static int wait_for_end(struct stat_run *run, int child_fd)
{
	uint64_t interval_ns = run->arguments->interval_ms * NS_PER_MS, next_ns = run->began_ns + interval_ns;
	uint64_t end_ns = run->arguments->duration_s ? run->began_ns + run->arguments->duration_s * NS_PER_S : UINT64_MAX;
	int code = SONDE_EXIT_REPORT;

	while (code == SONDE_EXIT_REPORT && !is_over(run)) {
		uint64_t now = clock_ns(), until = now + (child_fd >= 0 ? 10 * LOOK_EVERY_NS : LOOK_EVERY_NS);

		if (now >= end_ns)
			break;
		if (interval_ns && now >= next_ns) {
			code = print_interval(run, now);
			next_ns += (now - next_ns) / interval_ns * interval_ns + interval_ns;
		}
		until = until < end_ns ? until : end_ns;
		until = interval_ns && until > next_ns ? next_ns : until;
		if (until > now)
			ppoll(&(struct pollfd){ .fd = child_fd, .events = POLLIN }, 1,
			      &(struct timespec){ .tv_sec = (time_t)((until - now) / NS_PER_S), .tv_nsec = (long)((until - now) % NS_PER_S) }, NULL);
	}
	return code;
}

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* An exit code; why has been said. */
static int go(struct stat_run *run)
{
	int err = stat_is_of_command(run->arguments) ? 0 : sonde_counters_start(run->report.set); /* its own begin by execve(2) */
	struct diag diag = { 0 };

	if (err) {
		output_say("the counters cannot be started: %s", strerror(-err));
		return SONDE_EXIT_FAILED;
	}
	run->began_ns = run->last_ns = clock_ns();
	err = run->command ? command_release(run->command, &diag) : 0;
	if (!err)
		return SONDE_EXIT_REPORT;
	output_say("%s", diag.text);
	return command_failure_code(err);
}

/* After Ctrl-C: the terminal has sent it to the command as well, which may have an end of its own. */
static void let_end(struct stat_run *run, int child_fd)
{
	if (atomic_load(&run->stopped) && child_fd >= 0)
		ppoll(&(struct pollfd){ .fd = child_fd, .events = POLLIN }, 1, &(struct timespec){ .tv_sec = 1 }, NULL);
	run->has_status = command_ended(run->command, &run->status) && WIFEXITED(run->status);
	run->report.goes_on = !command_stop(run->command);
	if (run->report.goes_on)
		output_say("'%s' goes on, with the process id %" PRIu32, run->arguments->command[0], command_tgid(run->command));
}

static int count_to_end(struct stat_run *run)
{
	CLEANUP(closep) int child_fd = run->command ? (int)syscall(SYS_pidfd_open, command_tgid(run->command), 0) : -1;
	struct rusage before, after;
	int code;

	getrusage(RUSAGE_CHILDREN, &before);
	code = go(run);
	if (code != SONDE_EXIT_REPORT)
		return code;
	code = wait_for_end(run, child_fd);
	run->is_cut = run->command && !run->has_status && atomic_load(&run->stopped);
	if (run->command && !run->has_status)
		let_end(run, child_fd);
	if (sonde_counters_stop(run->report.set))
		output_say("some counters cannot be stopped: what they say is a little more than it was");
	run->ended_ns = clock_ns();
	getrusage(RUSAGE_CHILDREN, &after);
	run->user_s = seconds_of(after.ru_utime) - seconds_of(before.ru_utime);
	run->system_s = seconds_of(after.ru_stime) - seconds_of(before.ru_stime);
	return code;
}

/* A run that was cut short says nothing of the others. */
static int end_run(struct stat_run *run, int code)
{
	struct stat_report *report = &run->report;

	if (code != SONDE_EXIT_REPORT)
		return code;
	if (run->arguments->interval_ms)
		return print_interval(run, run->ended_ns);
	if (run->is_cut && report->nr_runs) {
		output_say("run %" PRIu32 " was cut short, and is left out", report->nr_runs + 1);
		return code;
	}
	report->nr_runs++;
	read_counts(run, NULL);
	stat_add_to_mean((double)(run->ended_ns - run->began_ns) / NS_PER_S, report->nr_runs, &report->elapsed_s, &report->elapsed_squares);
	report->user_s += (run->user_s - report->user_s) / report->nr_runs;
	report->system_s += (run->system_s - report->system_s) / report->nr_runs;
	return code;
}

static int count_once(struct stat_run *run)
{
	struct diag diag = { 0 };
	int code;

	sonde_counters_free(run->report.set);
	command_free(run->command);
	run->report.set = NULL;
	run->command = NULL;
	run->has_status = false;
	if (run->arguments->command && command_new(run->arguments->command, &diag, &run->command)) {
		output_say("%s", diag.text);
		return SONDE_EXIT_FAILED;
	}
	file_limit_raise();
	code = stat_open(run->arguments, run->command ? command_tgid(run->command) : 0, &run->report);
	if (code == SONDE_EXIT_REPORT)
		code = take_events(run);
	if (code != SONDE_EXIT_REPORT)
		return code;
	return end_run(run, count_to_end(run));
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

	sonde_counters_free(run.report.set);
	command_free(run.command);
	closep(&run.out_fd);
	free(run.report.events);
	free(run.now);
	free(run.last);
	return code;
}
