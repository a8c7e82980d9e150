// SPDX-License-Identifier: Apache-2.0
/* The letters, names and meanings of BCC's profile, and what sonde adds. */
#include "cli/profile.h"
#include "cli/profile_files.h"

#include <errno.h>
#include <string.h>

#include "cli/machine.h"
#include "cli/verbs.h"

#define MAX_ID         4194304    /* the kernel's PID_MAX_LIMIT */
#define MAX_DURATION_S 999999999  /* 31 years */
#define MAX_FREQ_HZ    1000000000
#define MAX_STACKS     (1 << 26)
#define MAX_UNWIND_MIB 1024       /* all that the kernel side can address */
#define MAX_TIMEOUT_S  3600
#define MAX_COMM_BYTES 15         /* the kernel's TASK_COMM_LEN without its NUL */

#define FIELD(field) .offset = offsetof(struct profile_arguments, field)

static const struct option_spec options[] = {
	{ .group = "What is sampled", .metavar = "DURATION", .kind = OPTION_NUMBER, FIELD(duration_s), .min = 1, .max = MAX_DURATION_S,
	  .help = "seconds; without it until Ctrl-C or the end of what is sampled" },
	{ .letter = 'F', .name = "frequency", .metavar = "HZ", .kind = OPTION_NUMBER, FIELD(freq_hz), .min = 1, .max = MAX_FREQ_HZ,
	  .help = "samples per second and CPU; 49 unless -c is given" },
	{ .letter = 'c', .name = "count", .metavar = "N", .kind = OPTION_NUMBER, FIELD(period), .min = 1, .max = INT64_MAX,
	  .excludes = "frequency", .instead = "give the rate (-F) or the number of events between two samples (-c)",
	  .help = "sample every N events instead; one event of cpu-clock is a nanosecond" },
	{ .letter = 'e', .name = "event", .metavar = "EVENT", .kind = OPTION_TEXT, FIELD(event),
	  .help = "what drives the sampling, by perf's names: cpu-clock (default), cycles, instructions, page-faults and others" },
	{ .name = "no-fallback", .kind = OPTION_FLAG, FIELD(no_fallback),
	  .help = "refuse an event that this machine lacks; otherwise cpu-clock takes its place, with a warning" },
	{ .letter = 'U', .name = "user-stacks-only", .kind = OPTION_FLAG, FIELD(user_only), .help = "user stacks, no kernel frames" },
	{ .letter = 'K', .name = "kernel-stacks-only", .kind = OPTION_FLAG, FIELD(kernel_only), .excludes = "user-stacks-only",
	  .instead = "leave both out to see user and kernel frames", .help = "kernel stacks, no user frames" },
	{ .letter = 'I', .name = "include-idle", .kind = OPTION_FLAG, FIELD(idle), .help = "also CPUs that do nothing" },
	{ .name = "stack-storage-size", .metavar = "N", .kind = OPTION_NUMBER, FIELD(stack_storage), .min = 1, .max = MAX_STACKS,
	  .help = "how many different stacks can be kept; 16384" },
	{ .name = "unwind-memory", .metavar = "MIB", .kind = OPTION_NUMBER, FIELD(unwind_mib), .min = 1, .max = MAX_UNWIND_MIB,
	  .help = "kernel memory for unwind tables and mappings, in MiB; 64. Tables that find no room are loaded in turn" },
	{ .name = "no-unwind-cache", .kind = OPTION_FLAG, FIELD(no_unwind_cache),
	  .help = "neither read nor write the compiled unwind tables in /var/cache/sonde or ~/.cache/sonde" },

	{ .group = "Whose", .letter = 'p', .name = "pid", .metavar = "PID[,PID...]", .kind = OPTION_IDS, FIELD(tgids), .min = 1,
	  .max = MAX_ID, .values = OPTION_VALUES_PROCESS, .help = "only these processes; may be repeated" },
	{ .letter = 'L', .name = "tid", .metavar = "TID[,TID...]", .kind = OPTION_IDS, FIELD(tids), .min = 1, .max = MAX_ID,
	  .excludes = "pid", .instead = "a thread (-L) is in one process already, leave -p out", .help = "only these threads; may be repeated" },
	{ .letter = 'n', .name = "comm", .metavar = "NAME", .kind = OPTION_TEXT, FIELD(comm),
	  .help = "only threads of this name, and all threads of processes of this name" },
	{ .letter = 'C', .name = "cpu", .metavar = "CPU", .kind = OPTION_NUMBER, FIELD(cpu), .max = INT32_MAX,
	  .help = "only what runs on this CPU; the first is 0" },

	{ .group = "How it is written", .letter = 'f', .name = "folded", .kind = OPTION_FLAG, FIELD(folded),
	  .help = "one line per stack, for flame graphs, instead of text; and no header" },
	{ .letter = 'd', .name = "delimited", .kind = OPTION_FLAG, FIELD(delimited), .help = "a line between kernel and user frames" },
	{ .letter = 'a', .name = "annotations", .kind = OPTION_FLAG, FIELD(annotate), .help = "add _[k] to kernel frames" },
	{ .name = "offsets", .kind = OPTION_FLAG, FIELD(offsets), .help = "function+offset, and a stack of its own for every address" },
	{ .name = "lines", .kind = OPTION_FLAG, FIELD(lines),
	  .help = "also inlined functions and source lines, by the programs' debug info; pprof and HTML have them anyway" },
	{ .name = "no-lines", .kind = OPTION_FLAG, FIELD(no_lines), .excludes = "lines", .instead = "leave both out to have lines where the format shows them",
	  .help = "functions by their symbols only: faster" },
	{ .name = "debuginfod-timeout", .metavar = "SECONDS", .kind = OPTION_NUMBER, FIELD(debuginfod_timeout_s), .max = MAX_TIMEOUT_S,
	  .help = "wait so long for debug files from the servers in $DEBUGINFOD_URLS, after the last sample; 5. 0: use what has come by then" },
	{ .name = "vmlinux", .metavar = "FILE", .kind = OPTION_TEXT, FIELD(vmlinux), .values = OPTION_VALUES_FILE,
	  .help = "the running kernel's file with debug info, for its source lines; it is looked for where perf looks" },
	{ .name = "threads", .kind = OPTION_FLAG, FIELD(threads), .help = "keep the threads of a process apart" },
	{ .name = "timestamps", .kind = OPTION_FLAG, FIELD(timestamps), .help = "record the time of each sample, for the formats that can carry it" },
	{ .letter = 'o', .name = "output", .metavar = "FILE", .kind = OPTION_TEXTS, FIELD(outputs), .values = OPTION_VALUES_FILE,
	  .help = "write to FILE, in the format that its suffix names; - is standard output; may be repeated" },
	{ .name = "format", .metavar = "NAME", .kind = OPTION_TEXT, FIELD(format), .value_name = profile_write_format_at, .excludes = "folded",
	  .instead = "-f is --format folded without the header", .help = "write in this format, whatever the suffix says" },

	{ .group = "For the curious", .name = "audit", .kind = OPTION_FLAG, FIELD(audit),
	  .help = "unwind one of every 1000 user stacks once more, by libdw, and say how many agree" },
	{ .name = "audit-every", .metavar = "N", .kind = OPTION_NUMBER, FIELD(audit_every), .min = 1, .max = UINT32_MAX,
	  .help = "audit one of every N user stacks instead" },
	{ .name = "ebpf", .kind = OPTION_FLAG, FIELD(ebpf),
	  .help = "print the source of the BPF programs that this command line would load, and end" },
};

static const struct verb_example examples[] = {
	{ "sonde profile", "everything, at 49 Hertz, until Ctrl-C" },
	{ "sonde profile -F 99", "at 99 Hertz" },
	{ "sonde profile -c 1000000", "a sample every 1000000 events" },
	{ "sonde profile 5", "for 5 seconds" },
	{ "sonde profile -f 5", "folded, for flame graphs" },
	{ "sonde profile -p 185", "only process 185" },
	{ "sonde profile -L 185", "only thread 185" },
	{ "sonde profile -U", "only user stacks" },
	{ "sonde profile -K", "only kernel stacks" },
	{ "sonde profile -o x.html 10", "a flame graph for the browser" },
	{ "sonde profile -o x.pb.gz -- make", "a command from its start to its end" },
	{ NULL, NULL },
};

const struct verb profile_verb = {
	.name = "profile",
	.summary = "what runs on the CPUs",
	.description = "Samples the stacks of what runs on the CPUs, of the kernel and of every program, without asking them: no frame "
		       "pointers, no recompile, no restart. Prints each stack with the number of its samples, the hottest last.\n\n"
		       "The options are those of BCC's profile, and more.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.takes_command = true,
	.run = profile_run,
};

const char *profile_format(const struct profile_arguments *arguments, const char *path)
{
	const char *name, *plain = arguments->folded ? "folded" : "text";

	if (arguments->format)
		return arguments->format;
	if (!strcmp(path, "-"))
		return plain;
	name = sonde_format_by_path(path);
	if (!name)
		return arguments->folded ? plain : NULL;
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
static int check_outputs(const struct profile_arguments *arguments, struct diag *diag)
{
	for (uint32_t i = 0; i < arguments->outputs.nr; i++) {
		const char *path = arguments->outputs.texts[i];

		if (!profile_format(arguments, path)) {
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
			if (!strcmp(path, arguments->outputs.texts[k]))
				return diag_errno(diag, EINVAL, "-o '%.80s' is given twice: leave one out", path);
		}
	}
	return 0;
}

int profile_check(const struct profile_arguments *arguments, struct diag *diag)
{
	int err = 0;

	if (arguments->comm && strlen(arguments->comm) > MAX_COMM_BYTES)
		return diag_errno(diag, EINVAL, "the kernel keeps %d bytes of a name: write -n '%.*s'", MAX_COMM_BYTES, MAX_COMM_BYTES,
				  arguments->comm);
	if (arguments->command && (arguments->tgids.nr || arguments->tids.nr))
		return diag_errno(diag, EINVAL, "-%c and a command exclude each other: the command's processes are what is sampled",
				  arguments->tgids.nr ? 'p' : 'L');
	if (arguments->format)
		err = check_format(arguments->format, diag);
	if (!err)
		err = check_outputs(arguments, diag);
	return err || arguments->cpu == PROFILE_ALL_CPUS ? err : machine_check_cpu(arguments->cpu, diag);
}
