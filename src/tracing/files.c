// SPDX-License-Identifier: Apache-2.0
/* sonde files: which files are opened, by whom, and how that ends: BCC's opensnoop, and sums by path. */
#include <errno.h>

#include "base/clock.h"
#include "tracing/events_options.h"
#include "cli/verbs.h"

struct files_arguments {
	struct events_options events;
	uint64_t duration_s; /* 0: not given */
	bool sums, failed_only;
};

static const char *by_at(uint32_t i)
{
	static const char *const words[] = { "pid", "comm", "path" }; /* enum sonde_by */

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

static const char *format_at(uint32_t i)
{
	static const char *const words[] = { "text", "bpftrace", "json" };

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

#define FIELD(field) .offset = offsetof(struct files_arguments, field)

static const struct option_spec options[] = {
	EVENTS_INTERVAL_OPTIONS(struct files_arguments, events,
				"sums by path, after so many seconds each; without it each call is a line when it ends"),
	{ .letter = 'd',
	  .name = "duration",
	  .metavar = "SECONDS",
	  .kind = OPTION_NUMBER,
	  FIELD(duration_s),
	  .min = 1,
	  .max = OPTION_MAX_SECONDS,
	  .help = "end after so many seconds; without it at Ctrl-C or at the end of what is measured" },
	{ .letter = 'x', .name = "failed", .kind = OPTION_FLAG, FIELD(failed_only), .help = "only calls that failed" },
	{ .name = "sum", .kind = OPTION_FLAG, FIELD(sums), .help = "sums at the end, without intervals" },

	TARGET_OPTIONS(struct files_arguments, events.targets),

	EVENTS_SHOWN_OPTIONS(struct files_arguments, events, by_at,
			     "with sums, a row for each pid, comm or path, or for what occurs of several; path",
			     format_at, "text; bpftrace: 'PID 185: cat is opening: /etc/passwd'; json: an object per line"),
};

static const struct verb_example examples[] = {
	{ "sonde files", "each file that is opened, with its full path, until Ctrl-C" },
	{ "sonde files -x -n nginx", "what nginx looks for and does not find" },
	{ "sonde files -- make", "what a build opens, with its children" },
	{ "sonde files 5", "sums by path, every five seconds" },
	{ "sonde files --sum --by pid,path -- ./start.sh", "who of a command's processes opens which file, at its end" },
	{ NULL, NULL },
};

static int check(void *all, char *const *command, struct diag *diag)
{
	struct files_arguments *arguments = all;
	struct events_options *events = &arguments->events;
	int err = events_check(events, command, by_at, format_at, diag);

	if (err)
		return err;
	if (events->interval_s && arguments->sums)
		return diag_errno(diag, EINVAL, "--sum is for the end, INTERVAL gives sums anyway: leave one out");
	if (events->interval_s && arguments->duration_s)
		return diag_errno(diag, EINVAL, "-d is for lines and --sum: give COUNT intervals");
	arguments->sums |= events->interval_s != 0;
	if (!arguments->sums && (events->by_text || events->timestamps || events->top != EVENTS_DEFAULT_TOP))
		return diag_errno(diag, EINVAL, "%s is for sums: add INTERVAL or --sum",
				  events->by_text      ? "--by"
				  : events->timestamps ? "-T"
						       : "--top");
	if (arguments->sums && events->format == SONDE_LINES_BPFTRACE)
		return diag_errno(diag, EINVAL, "--format bpftrace is for single calls: leave INTERVAL and --sum out");
	return 0;
}

static int files_run(void *all, const char *command_line)
{
	const struct files_arguments *arguments = all;
	const struct sonde_files_options files = {
		.size = sizeof(files),
		.format = arguments->events.format,
		.failed_only = arguments->failed_only,
		.sums = arguments->sums,
		.timestamps = arguments->events.timestamps,
		.by = arguments->events.by,
		.top = arguments->sums ? events_top(&arguments->events) : 0,
	};
	struct sonde_session_options of_library = events_session_options(&arguments->events, command_line);

	of_library.mode = SONDE_FILES;
	of_library.files = &files;
	if (arguments->duration_s)
		of_library.duration_ns = arguments->duration_s * NS_PER_S;
	return events_run(&files_verb, &arguments->events, &of_library, "Tracing opened files",
			  "no file was opened by those that were asked for");
}

static const struct files_arguments defaults = { .events = { .top = EVENTS_DEFAULT_TOP } };

const struct verb files_verb = {
	.name = "files",
	.summary = "which files are opened, and by whom",
	.description =
	    "Prints a line for each call that opens a file (open, creat, openat, openat2, open_by_handle_at, of 64 and 32 bits), when it "
	    "ends: "
	    "time, process, the descriptor or the error, flags, and the path as it was given. A relative path has the folder before it "
	    "that it begins "
	    "at, as seen from the root of the process. With INTERVAL or --sum, calls are summed in the kernel and not sent.\n\n"
	    "sonde's own calls are left out. Not seen: what io_uring opens, and files that are opened without a name of theirs "
	    "(memfd_create, "
	    "sockets, pipes). A line that found no room on its way is counted, and the last line on standard error says how many.\n\n"
	    "bpftrace 0.17 does the first half of it with: bpftrace -e 'tracepoint:syscalls:sys_enter_openat { printf(\"PID %d: %s is "
	    "opening: "
	    "%s\\n\", pid, comm, str(args->filename)); }'",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.takes_command = true,
	.arguments_bytes = sizeof(struct files_arguments),
	.defaults = &defaults,
	.check = check,
	.run = files_run,
};
