// SPDX-License-Identifier: Apache-2.0
/* sonde io: which process reads and writes how much of which file. */
#include "tracing/events_options.h"
#include "cli/verbs.h"

struct io_arguments {
	struct events_options events;
	bool requested;
};

static const char *by_at(uint32_t i)
{
	static const char *const words[] = { "pid", "comm", "file", "call" }; /* enum sonde_by */

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

static const char *format_at(uint32_t i)
{
	static const char *const words[] = { "text", "json" };

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

#define FIELD(field) .offset = offsetof(struct io_arguments, field)

static const struct option_spec options[] = {
	EVENTS_INTERVAL_OPTIONS(struct io_arguments, events,
				"seconds between two reports; without it one, at Ctrl-C or at the end of what is measured"),
	{ .name = "requested",
	  .kind = OPTION_FLAG,
	  FIELD(requested),
	  .help = "the bytes that calls asked for, also failed ones, instead of those transferred" },

	TARGET_OPTIONS(struct io_arguments, events.targets),

	EVENTS_SHOWN_OPTIONS(struct io_arguments, events, by_at,
			     "a row for each pid, comm, file or (system) call, or for what occurs of several; pid,file",
			     format_at, "text; json: an object per line"),
};

static const struct verb_example examples[] = {
	{ "sonde io", "which process reads and writes which file, until Ctrl-C" },
	{ "sonde io 1", "each second, the 20 with the most bytes" },
	{ "sonde io --by file -n postgres 10 1", "the files of a database, for ten seconds" },
	{ "sonde io --by call -- tar cf /dev/null /usr/share", "the system calls of a command" },
	{ NULL, NULL },
};

static int check(void *all, char *const *command, struct diag *diag)
{
	return events_check(&((struct io_arguments *)all)->events, command, by_at, format_at, diag);
}

static int io_run(void *all, const char *command_line)
{
	const struct io_arguments *arguments = all;
	const struct sonde_io_options io = {
		.size = sizeof(io),
		.format = arguments->events.format,
		.requested = arguments->requested,
		.timestamps = arguments->events.timestamps,
		.by = arguments->events.by,
		.top = events_top(&arguments->events),
	};
	struct sonde_session_options of_library = events_session_options(&arguments->events, command_line);

	of_library.mode = SONDE_IO;
	of_library.io = &io;
	return events_run(&io_verb, &arguments->events, &of_library, "Tracing reads and writes",
			  "nothing was read or written by those that were asked for");
}

static const struct io_arguments defaults = { .events = { .top = EVENTS_DEFAULT_TOP } };

const struct verb io_verb = {
	.name = "io",
	.summary = "which process reads and writes how much of which file",
	.description =
	    "Sums the calls that read and write by process and file, in the kernel: calls, bytes that were transferred, calls that failed, "
	    "and how "
	    "long they took on average and at most. Calls are read, pread64, readv, preadv, preadv2, recvfrom, recvmsg, recvmmsg and those "
	    "that write; sendfile, splice, tee, copy_file_range and vmsplice, where one call reads one file and writes another; and those "
	    "of "
	    "32-bit programs. A call that has not returned yet is not counted. Files are shown with the path that they have when they "
	    "are first used in an interval, as seen from the root of the process, sockets with their addresses, pipes with their "
	    "number.\n\n"
	    "sonde's own calls are left out. Not seen, but counted and reported at the end: requests to io_uring and to io_submit (not "
	    "those "
	    "that a thread of the kernel fetches by itself), and files mapped to be written through memory. Those that were mapped before "
	    "are not seen at all.\n\n"
	    "bpftrace 0.17 answers which process writes how much, but not to which file, with: bpftrace -e "
	    "'tracepoint:syscalls:sys_exit_write "
	    "/args->ret > 0/ { @[pid, comm] = sum(args->ret); }'",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.takes_command = true,
	.arguments_bytes = sizeof(struct io_arguments),
	.defaults = &defaults,
	.check = check,
	.run = io_run,
};
