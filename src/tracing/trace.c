// SPDX-License-Identifier: Apache-2.0
/* sonde trace: hits of tracepoints, system calls, kernel and user functions. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/recording.h"
#include "cli/verbs.h"
#include "tracing/events_options.h"

struct trace_arguments {
	struct events_options events;
	const char *probes, *filter, *by_text;
	uint64_t duration_s;
	bool latency, print, list, verbose;
	bool stacks;
	struct recording recording; /* with stacks */
	char by_list[256];	    /* by_text without the argument */
	char by_arg_text[128];
	const char *by_arg; /* by_arg_text; NULL: none */
};

static const char *by_at(uint32_t i)
{
	static const char *const words[] = { "pid", "comm", "tid", "cpu", "stack" };

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

static const char *format_at(uint32_t i)
{
	static const char *const words[] = { "text", "json" };

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

#define AT(field)    offsetof(struct trace_arguments, field)
#define FIELD(field) .offset = AT(field)

static const struct option_spec options[] = {
	{ .group = "What is measured",
	  .metavar = "PROBE[,PROBE...]",
	  .kind = OPTION_TEXT,
	  FIELD(probes),
	  .help = "what is traced, see below" },
	OPTION_ROW_DURATION(AT(duration_s), "seconds; without it until Ctrl-C or the end of what is measured"),
	{ .name = "filter",
	  .metavar = "COMPARISONS",
	  .kind = OPTION_TEXT,
	  FIELD(filter),
	  .help = "only hits of which all is true: "
		  " 'FIELD OP VALUE && ...', eight in the kernel; OP is ==, !=, <, <=, >, >= or ^= (begins with)" },
	{ .name = "latency",
	  .kind = OPTION_FLAG,
	  FIELD(latency),
	  .help = "the time from entry to return, of functions and system calls, as a histogram" },
	{ .letter = 'l',
	  .name = "list",
	  .kind = OPTION_FLAG,
	  FIELD(list),
	  .help = "list what can be traced and matches PROBE, with * ? and [] in its name or in type:name; all without it" },
	{ .letter = 'v', .name = "verbose", .kind = OPTION_FLAG, FIELD(verbose), .help = "with -l: arguments and their types" },

	TARGET_OPTIONS(struct trace_arguments, events.targets),

	OPTION_ROW_BY(AT(by_text), by_at, "[,WHAT...]",
		      "count by pid, tid, comm, cpu, stack, and by one arg:FIELD; without it one number for each probe"),
	{ .name = "print",
	  .kind = OPTION_FLAG,
	  FIELD(print),
	  .excludes = "latency",
	  .instead = "times are summed, single hits have none",
	  .help = "a line for each hit, with its arguments" },
	{ .name = "stacks",
	  .kind = OPTION_FLAG,
	  FIELD(stacks),
	  .help = "a profile of the stacks at the probes, in any format of sonde profile; with --print each hit's stack under its line" },
	RECORDING_STACK_OPTIONS(struct trace_arguments, recording),

	RECORDING_OUTPUT_OPTIONS(struct trace_arguments, recording),
};

static const struct verb_example examples[] = {
	{ "sonde trace syscall:openat --by comm", "which programs open files" },
	{ "sonde trace sched_process_exec --print", "each program that is started" },
	{ "sonde trace sched_switch --by arg:next.comm 5", "which threads get a CPU" },
	{ "sonde trace syscall:fsync --latency", "how long fsync takes" },
	{ "sonde trace vfs_write --by arg:file.f_path.dentry.d_name.name", "which files are written to" },
	{ "sonde trace vfs_fsync --print --stacks", "each fsync, and who asks for it" },
	{ "sonde trace uprobe:./server:main.c:120 --by stack", "which ways lead to a line" },
	{ "sonde trace uprobe:/bin/bash:readline --print", "each line that is typed into bash" },
	{ "sonde trace irq_handler_entry --by arg:action.name", "which interrupts there are" },
	{ "sonde trace tcp_retransmit_skb --stacks -o lost.html", "what leads to retransmissions, as a flame graph" },
	{ "sonde trace -l 'vfs_*'", "kernel functions of that name" },
	{ NULL, NULL },
};

/* Takes arg:FIELD out of the words of --by. */
static int split_by(struct trace_arguments *arguments, struct diag *diag)
{
	const char *at = arguments->by_text;

	if (strlen(at) >= sizeof(arguments->by_list))
		return diag_errno(diag, EINVAL, "--by is too long");
	do {
		size_t size = strcspn(at, ",");

		if (!strncmp(at, "arg:", 4)) {
			if (*arguments->by_arg_text || size - 4 >= sizeof(arguments->by_arg_text))
				return diag_errno(diag, EINVAL, "--by has one arg:FIELD, of %zu bytes at most",
						  sizeof(arguments->by_arg_text) - 1);
			memcpy(arguments->by_arg_text, at + 4, size - 4);
			arguments->by_arg = arguments->by_arg_text;
		} else {
			size_t nr = strlen(arguments->by_list);

			snprintf(arguments->by_list + nr, sizeof(arguments->by_list) - nr, "%s%.*s", nr ? "," : "", (int)size, at);
		}
		at += size;
	} while (*at++);
	arguments->events.by_text = *arguments->by_list ? arguments->by_list : NULL;
	return 0;
}

/* A profile of stacks, for files and all formats; else stacks are in lines. */
static bool is_profile(const struct trace_arguments *arguments)
{
	return arguments->stacks && !arguments->print;
}

static int check_profile(struct trace_arguments *arguments, struct diag *diag)
{
	if (!arguments->probes)
		return diag_errno(diag, EINVAL, "--stacks needs a probe: sonde trace -l '*NAME*' lists what there is");
	if (arguments->latency || arguments->by_text || arguments->list)
		return diag_errno(diag, EINVAL, "--stacks makes a profile: it goes without --latency, --by and -l; --by stack counts");
	arguments->recording.targets = arguments->events.targets;
	arguments->recording.duration_s = arguments->duration_s;
	return recording_check(&arguments->recording, diag);
}

static int check_hits(struct trace_arguments *arguments, char *const *command, struct diag *diag)
{
	int err = arguments->by_text ? split_by(arguments, diag) : 0;

	if (!err)
		err = events_check(&arguments->events, command, by_at, format_at, diag);
	if (err)
		return err;
	if (arguments->list)
		return 0;
	if (!arguments->probes)
		return diag_errno(diag, EINVAL, "what is to be traced? sonde trace -l '*NAME*' lists what there is");
	if (arguments->print && arguments->by_text)
		return diag_errno(diag, EINVAL, "--print shows single hits, --by counts them: leave one out");
	return 0;
}

static int check(void *all, char *const *command, struct diag *diag)
{
	struct trace_arguments *arguments = all;
	const struct recording *recording = &arguments->recording;

	if (is_profile(arguments))
		return check_profile(arguments, diag);
	if (recording->outputs.nr || recording->folded || recording->delimited || recording->annotate)
		return diag_errno(diag, EINVAL, "-o, -f, -d and -a are for --stacks without --print");
	arguments->events.format_text = recording->format;
	return check_hits(arguments, command, diag);
}

static int print(void *arg, const char *lines)
{
	return output_result_text(lines) ? -EPIPE : 0;
}

static int list(const struct trace_arguments *arguments)
{
	int err = sonde_trace_list(arguments->probes, arguments->verbose, print, NULL);

	if (err == -ENOENT) {
		output_say("nothing is called '%s' here; * stands for any characters", arguments->probes ? arguments->probes : "*");
		return SONDE_EXIT_NO_SAMPLES;
	}
	if (err && err != -EPIPE)
		output_say("cannot list: %s", strerror(-err));
	return err ? SONDE_EXIT_FAILED : SONDE_EXIT_REPORT;
}

/* The words of by_at, in the bits of enum sonde_by. */
static uint32_t by_bits(uint32_t words)
{
	return (words & 3) | (words & 4 ? SONDE_BY_TID : 0) | (words & 8 ? SONDE_BY_CPU : 0) | (words & 16 ? SONDE_BY_STACK : 0);
}

static int trace_run(void *all, const char *command_line)
{
	const struct trace_arguments *arguments = all;
	const struct sonde_trace_options trace = {
		.size = sizeof(trace),
		.probes = arguments->probes,
		.filter = arguments->filter,
		.format = arguments->events.format,
		.by = by_bits(arguments->events.by),
		.by_arg = arguments->by_arg,
		.latency = arguments->latency,
		.print = arguments->print,
	};
	struct sonde_session_options of_library;

	if (arguments->list)
		return list(arguments);
	of_library = is_profile(arguments) ? recording_options(&arguments->recording, command_line)
					   : events_session_options(&arguments->events, command_line);
	of_library.mode = arguments->stacks || trace.by & SONDE_BY_STACK ? SONDE_TRACE_STACKS : SONDE_TRACE;
	of_library.trace = &trace;
	of_library.duration_ns = arguments->duration_s * NS_PER_S;
	of_library.user_only = arguments->recording.user_only;
	of_library.offsets = arguments->recording.offsets;
	of_library.kernel_only = arguments->recording.kernel_only;
	if (is_profile(arguments))
		return recording_run(
		    &trace_verb, &arguments->recording, &of_library,
		    &(struct recording_words){ .measuring = "Tracing hits of", .no_samples = "nothing that was asked for was hit" });
	return events_run(&trace_verb, &arguments->events, &of_library, "Tracing hits", "nothing that was asked for was hit");
}

static const struct trace_arguments defaults = { .recording.debuginfod_timeout_s = RECORDING_DEFAULT_TIMEOUT };

const struct verb trace_verb = {
	.name = "trace",
	.summary = "how often a tracepoint, system call or function is hit, and by whom",
	.description =
	    "Counts the hits of probes in the kernel, or prints each of them, or measures the time from entry to return. A probe is\n\n"
	    "tracepoint:NAME (also t:GROUP:NAME or just NAME): a kernel tracepoint, with its arguments by BTF; rawtracepoint:NAME: one "
	    "that BTF does not have.\n\n"
	    "syscall:NAME (also syscalls:sys_enter_NAME, syscalls:sys_exit_NAME): a system call, of 64-bit and of 32-bit programs. Its "
	    "arguments have their names by tracefs, which is mounted for sonde alone if it is not mounted; without it they are arg0 to "
	    "arg5.\n\n"
	    "kprobe:FUNCTION, kretprobe:FUNCTION, fentry:FUNCTION, fexit:FUNCTION, or just FUNCTION: a function of the kernel or of a "
	    "module, by whichever of both ways the kernel has; where it has neither, the nearest tracepoint is named, and the code is 4. "
	    "For the handler of an interrupt that is irq_handler_entry, by the interrupt's name.\n\n"
	    "uprobe:FILE:FUNCTION, uretprobe:FILE:FUNCTION: a function of programs, in all processes or with -p in one; at its entry with "
	    "the names and types of its arguments, if FILE has DWARF. uprobe:FILE:SOURCE:LINE (in each inlined copy), "
	    "uprobe:FILE:FUNCTION+OFFSET, uprobe:FILE:0xOFFSET: a place in it. Returns of Go programs cannot be traced: Go ends at a "
	    "return probe. So does a program of C++ or Rust when an exception or a panic passes the function. Of a recursion the "
	    "kernel sees the outer 64 returns. usdt:FILE:PROVIDER:NAME: a USDT probe; its semaphore is "
	    "raised meanwhile.\n\n"
	    "A field is pid, tid, cpu, comm, ret (at the end), an argument by its name, arg0 to arg5, a member behind pointers (prev.pid, "
	    "action.name), or str(FIELD), the text at an address. An argument that is called pid, tid, cpu or comm itself goes by its "
	    "number. What is not in memory is shown as that, and no comparison of it is true: the end of the report says how many hits "
	    "that concerns. Comparisons are evaluated in the kernel; texts up to 63 bytes. With "
	    "--print there may be eight more, which are evaluated in user space; the last line on standard error says so.\n\n"
	    "A probe that is never hit is reported as attached, with 0 hits; with an interrupt's handler, the interrupts that came "
	    "meanwhile (/proc/interrupts) are shown beside it. sonde's own hits are left out, so a probe on what sonde does itself does "
	    "not feed itself; but what reads its output through a pipe is traced like any other program.\n\n"
	    "bpftrace does the same with: bpftrace -e 'tracepoint:syscalls:sys_enter_openat { @[comm] = count(); }', and --by stack with: "
	    "bpftrace -e 'kprobe:vfs_write { @[comm, kstack, ustack] = count(); }'",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.arguments_bytes = sizeof(struct trace_arguments),
	.defaults = &defaults,
	.check = check,
	.run = trace_run,
};
