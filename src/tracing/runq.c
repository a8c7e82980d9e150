// SPDX-License-Identifier: Apache-2.0
/* sonde runq: BCC's runqlat, runqslower, runqlen and cpudist as one verb. */
#include <errno.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/clock.h"
#include "cli/option_rows.h"
#include "cli/output.h"
#include "cli/profile_files.h"
#include "cli/session_end.h"
#include "cli/signals.h"
#include "cli/target_options.h"
#include "cli/verbs.h"

#define MAX_SLOWER_US UINT64_C(1000000000000) /* 11 days */
#define NOT_GIVEN     UINT64_MAX

struct runq_arguments {
	struct target_options targets;
	struct option_texts outputs;
	const char *format;
	uint64_t interval_s, nr_intervals; /* 0: not given */
	const char *by_text;
	enum sonde_runq_by by;             /* from by_text */
	bool milliseconds, timestamps, on_cpu, length, histogram, stacks;
	uint64_t slower_us;                /* NOT_GIVEN */
};

static const char *by_at(uint32_t i)
{
	static const char *const words[] = { "pid", "tid", "cpu", "cgroup", "comm" }; /* enum sonde_runq_by, from 1 on */

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

#define AT(field)    offsetof(struct runq_arguments, field)
#define FIELD(field) .offset = AT(field)

static const struct option_spec options[] = {
	OPTION_ROWS_INTERVALS(AT(interval_s), AT(nr_intervals),
			      "seconds between two reports; without it one, at Ctrl-C or at the end of what is measured"),
	{ .name = "slower",
	  .metavar = "US",
	  .kind = OPTION_NUMBER,
	  FIELD(slower_us),
	  .min = 1,
	  .max = MAX_SLOWER_US,
	  .instead_of_none = "10000",
	  .help = "instead of a histogram each wait that is longer, as a line when it ends, with the thread that had the CPU before "
		  "(PREV); in microseconds, 10000 if no number is "
		  "given. PID is the thread's id, as with runqslower; PRIO is nice, or 1 to 99 in real time" },
	{ .name = "stacks",
	  .kind = OPTION_FLAG,
	  FIELD(stacks),
	  .help = "with --slower: below each line the stack of that other thread where it left the CPU, the kernel's part and its own, "
		  "leaf first" },
	{ .name = "hist", .kind = OPTION_FLAG, FIELD(histogram), .help = "with --slower: the histogram, too, at the end" },
	{ .name = "oncpu",
	  .kind = OPTION_FLAG,
	  FIELD(on_cpu),
	  .excludes = "slower",
	  .instead = "--slower is about waiting for a CPU",
	  .help = "how long threads stay on the CPU at a time, instead" },
	{ .name = "len",
	  .kind = OPTION_FLAG,
	  FIELD(length),
	  .excludes = "oncpu",
	  .instead = "one at a time",
	  .help = "how many threads wait on a CPU's queue, looked at 99 times a second, instead" },

	TARGET_OPTIONS(struct runq_arguments, targets),

	OPTION_ROW_BY(AT(by_text), by_at, "", "a histogram for each pid, tid, cpu, cgroup or comm, the one with the most time last"),
	{ .letter = 'm', .name = "ms", .kind = OPTION_FLAG, FIELD(milliseconds), .help = "milliseconds instead of microseconds" },
	OPTION_ROW_TIMESTAMP(AT(timestamps), "the time before each report"),
	OPTION_ROW_OUTPUT(AT(outputs),
			  "write the histograms of all intervals together to FILE, in the format that its suffix names, instead of "
			  "reports; - is standard output; may be repeated"),
	OPTION_ROW_FORMAT(AT(format), profile_write_format_at, OPTION_FORMAT_ANY),
};

static const struct verb_example examples[] = {
	{ "sonde runq", "how long threads wait for a CPU, until Ctrl-C" },
	{ "sonde runq 1 10", "each second, ten times" },
	{ "sonde runq -mT 1", "in milliseconds, with the time" },
	{ "sonde runq --by pid 5 1", "each process for itself" },
	{ "sonde runq --slower 1000", "each wait of more than a millisecond, and who had the CPU" },
	{ "sonde runq --slower 1000 --stacks", "and where that one was" },
	{ "sonde runq --slower 1000 --hist -n worker 10 1", "and the histogram of the threads named worker" },
	{ "sonde runq --len --by cpu 1", "how many wait on each CPU" },
	{ "sonde runq --oncpu -p 185", "how long process 185 stays on a CPU" },
	{ "sonde runq -o before.json 10 1", "for sonde diff" },
	{ NULL, NULL },
};

static int parse_by(struct runq_arguments *arguments, struct diag *diag)
{
	for (uint32_t i = 0; by_at(i); i++) {
		if (!strcmp(arguments->by_text, by_at(i)))
			arguments->by = i + 1;
	}
	return arguments->by ? 0 : diag_errno(diag, EINVAL, "--by takes pid, tid, cpu, cgroup or comm, not '%.60s'", arguments->by_text);
}

static bool writes_to_stdout(const struct runq_arguments *arguments)
{
	for (uint32_t i = 0; i < arguments->outputs.nr; i++) {
		if (!strcmp(arguments->outputs.texts[i], "-"))
			return true;
	}
	return false;
}

static int check_slower(const struct runq_arguments *arguments, struct diag *diag)
{
	bool slower = arguments->slower_us != NOT_GIVEN;

	if (arguments->length && slower)
		return diag_errno(diag, EINVAL, "--len and --slower exclude each other: one counts threads, the other times them");
	if (arguments->histogram && !slower)
		return diag_errno(diag, EINVAL, "--hist is for --slower: without that there is a histogram anyway");
	if (arguments->stacks && !slower)
		return diag_errno(diag, EINVAL, "--stacks needs --slower: it shows the stacks of the thread that had the CPU");
	if (slower && !arguments->histogram &&
	    (arguments->by_text || arguments->milliseconds || arguments->timestamps || arguments->outputs.nr))
		return diag_errno(diag, EINVAL, "%s is for histograms: add --hist, or leave --slower out",
				  arguments->by_text ? "--by" : arguments->milliseconds ? "--ms" : arguments->timestamps ? "-T" : "-o");
	if (slower && writes_to_stdout(arguments))
		return diag_errno(diag, EINVAL, "the lines of --slower go to standard output: give -o a file");
	return 0;
}

static int check(void *all, char *const *command, struct diag *diag)
{
	struct runq_arguments *arguments = all;
	int err = check_slower(arguments, diag);

	if (!err && arguments->format && !arguments->outputs.nr)
		return diag_errno(diag, EINVAL, "--format is for -o: say where to write");
	if (!err)
		err = target_options_check(&arguments->targets, command, diag);
	if (!err)
		err = profile_check_outputs(&arguments->outputs, arguments->format, diag);
	return err || !arguments->by_text ? err : parse_by(arguments, diag);
}

static int print(void *arg, const char *lines)
{
	return output_result_text(lines) ? -EPIPE : 0;
}

/* With --slower the report has runqslower's header instead. */
static void print_header(void *arg)
{
	const struct runq_arguments *arguments = arg;
	struct buffer header = BUFFER_INIT(1 << 17);

	if (arguments->slower_us != NOT_GIVEN)
		return;
	buffer_printf(&header, "Tracing %s of ",
		      arguments->length	  ? "run queue length"
		      : arguments->on_cpu ? "time on CPU"
					  : "run queue latency");
	target_options_text(&arguments->targets, NULL, &header);
	buffer_text(&header, "... Hit Ctrl-C to end.\n");
	output_talk(header.data);
	buffer_done(&header);
}

/* Of all intervals together. 0: unlimited, or too long to count. */
static uint64_t duration_ns(const struct runq_arguments *arguments)
{
	uint64_t interval_ns = arguments->interval_s * NS_PER_S;

	return interval_ns && arguments->nr_intervals <= UINT64_MAX / interval_ns ? interval_ns * arguments->nr_intervals : 0;
}

static struct sonde_session_options to_options(const struct runq_arguments *arguments, const char *command_line,
					       const struct sonde_runq_options *runq)
{
	const struct target_options *targets = &arguments->targets;

	return (struct sonde_session_options){
		.size = sizeof(struct sonde_session_options),
		.command_line = command_line,
		.mode = SONDE_RUN_QUEUE,
		.runq = runq,
		.duration_ns = duration_ns(arguments),
		.tgids = targets->tgids.nr ? targets->tgids.ids : NULL,
		.tids = targets->tids.nr ? targets->tids.ids : NULL,
		.nr_tgids = targets->tgids.nr,
		.nr_tids = targets->tids.nr,
		.comm = targets->comm,
		.cgroup = targets->cgroup,
		.every_ns = arguments->interval_s * NS_PER_S,
		.started = print_header,
		.text = print,
		.arg = (void *)(uintptr_t)arguments,
	};
}

static int failed(const struct sonde_session *session, int err)
{
	return err == -EPIPE ? SONDE_EXIT_FAILED : session_failed(&runq_verb, session, err); /* -EPIPE: already reported */
}

static int add_outputs(const struct runq_arguments *arguments, struct sonde_session *session)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < arguments->outputs.nr; i++) {
		const char *path = arguments->outputs.texts[i];

		err = sonde_session_add_output(session, path, arguments->format || strcmp(path, "-") != 0 ? arguments->format : "text");
	}
	return err;
}

static int measure(const struct runq_arguments *arguments, struct sonde_session *session)
{
	int err = add_outputs(arguments, session);

	if (err)
		return failed(session, err);
	signals_stop(session_stop, session);
	err = sonde_session_run(session);
	signals_report();
	if (!err)
		err = sonde_session_write(session);
	if (err)
		return failed(session, err);
	output_talk(sonde_session_account(session));
	if (sonde_session_exit_code(session) == SONDE_EXIT_NO_SAMPLES)
		output_say("no samples: %s", arguments->on_cpu ? "no thread that was asked for left a CPU"
							       : "no thread that was asked for got a CPU");
	return sonde_session_exit_code(session);
}

static int runq_run(void *all, const char *command_line)
{
	const struct runq_arguments *arguments = all;
	const struct sonde_runq_options runq = {
		.size = sizeof(runq),
		.what = arguments->length ? SONDE_RUNQ_LENGTH : arguments->on_cpu ? SONDE_RUNQ_ON_CPU : SONDE_RUNQ_LATENCY,
		.by = arguments->by,
		.milliseconds = arguments->milliseconds,
		.timestamps = arguments->timestamps,
		.quiet = arguments->outputs.nr != 0,
		.slower = arguments->slower_us != NOT_GIVEN,
		.slower_ns = arguments->slower_us != NOT_GIVEN ? arguments->slower_us * NS_PER_US : 0,
		.histogram = arguments->histogram,
		.stacks = arguments->stacks,
	};
	const struct sonde_session_options of_library = to_options(arguments, command_line, &runq);
	struct sonde_session *session = NULL;
	int err = sonde_session_new(&of_library, &session), code;

	code = err ? failed(session, err) : measure(arguments, session);
	signals_done();
	sonde_session_free(session);
	return code;
}

static const struct runq_arguments defaults = { .slower_us = NOT_GIVEN };

const struct verb runq_verb = {
	.name = "runq",
	.summary = "how long threads wait for a CPU",
	.description = "Prints histograms of the time from a thread's wake-up, or from its being preempted, to its running: what it waits "
		       "because others have the CPU, and "
		       "until an idle CPU is awake.\n\n"
		       "The options are those of BCC's runqlat, runqslower, runqlen and cpudist, as far as the verbs of sonde do not have "
		       "others for the same.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.arguments_bytes = sizeof(struct runq_arguments),
	.defaults = &defaults,
	.check = check,
	.run = runq_run,
};
