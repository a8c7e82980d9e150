/* SPDX-License-Identifier: Apache-2.0 */
/* recording: what the verbs that record a profile have in common: the options, and the way from the command line to the report. */
#pragma once
#include <sonde/sonde.h>

#include "cli/option_rows.h"
#include "cli/profile_files.h"
#include "cli/runtimes_option.h"
#include "cli/target_options.h"

struct recording {
	struct target_options targets;
	uint64_t duration_s;              /* 0: not given, as below */
	uint64_t every_s, keep;
	bool user_only, kernel_only;
	uint64_t stack_storage, unwind_mib;
	bool no_unwind_cache;
	const char *runtimes;             /* NULL: all */
	bool perf_map;
	bool delimited, annotate, folded, lines, no_lines, offsets, threads;
	uint64_t source_lines;            /* 0: no source */
	uint64_t debuginfod_timeout_s;    /* RECORDING_DEFAULT_TIMEOUT: not given */
	const char *vmlinux;
	struct option_texts outputs;
	const char *format;
	const char *events;               /* NULL: not requested */
	char *const *command;             /* NULL: none */
	bool yes;                         /* go on whatever it costs */
};

#define RECORDING_MAX_DURATION_S 999999999  /* 31 years */
#define RECORDING_MAX_STACKS     (1 << 26)
#define RECORDING_MAX_UNWIND_MIB 1024       /* all that the kernel side can address */
#define RECORDING_MAX_TIMEOUT_S  3600
#define RECORDING_MAX_FREQ_HZ    1000000000
#define RECORDING_DEFAULT_TIMEOUT UINT64_MAX

/* Rows of an option table. `type` is that of the verb's arguments, `field` its struct recording. */
#define RECORDING_WINDOW_OPTIONS(type, field) \
	{ .name = "every", \
	  .metavar = "SECONDS", \
	  .kind = OPTION_NUMBER, \
	  .offset = offsetof(type, field.every_s), \
	  .min = 1, \
	  .max = RECORDING_MAX_DURATION_S, \
	  .help = "a report after so many seconds each, while the recording goes on: on standard output one after the other, or in files " \
		  "that -o names with %n (number) or %t (UTC time; a second window of one second has its number behind it), as " \
		  "cpu-%n.pb.gz; %% is a percent sign" }, \
	    { .name = "keep", \
	      .metavar = "N", \
	      .kind = OPTION_NUMBER, \
	      .offset = offsetof(type, field.keep), \
	      .min = 1, \
	      .max = UINT32_MAX, \
	      .help = "with --every: remove the oldest files of an -o when there are more than N" }

#define RECORDING_STACK_OPTIONS(type, field) \
	{ .letter = 'U', \
	  .name = "user-stacks-only", \
	  .kind = OPTION_FLAG, \
	  .offset = offsetof(type, field.user_only), \
	  .help = "user stacks, no kernel frames" }, \
	    { .letter = 'K', \
	      .name = "kernel-stacks-only", \
	      .kind = OPTION_FLAG, \
	      .offset = offsetof(type, field.kernel_only), \
	      .excludes = "user-stacks-only", \
	      .instead = "leave both out to see user and kernel frames", \
	      .help = "kernel stacks, no user frames" }, \
	    { .name = "stack-storage-size", \
	      .metavar = "N", \
	      .kind = OPTION_NUMBER, \
	      .offset = offsetof(type, field.stack_storage), \
	      .min = 1, \
	      .max = RECORDING_MAX_STACKS, \
	      .help = "keep no more than so many different stacks; without it as many as come" }, \
	    { .name = "unwind-memory", \
	      .metavar = "MIB", \
	      .kind = OPTION_NUMBER, \
	      .offset = offsetof(type, field.unwind_mib), \
	      .min = 1, \
	      .max = RECORDING_MAX_UNWIND_MIB, \
	      .help = "kernel memory for unwind tables and mappings, in MiB; 64. Tables that find no room are loaded in turn" }, \
	    { .name = "no-unwind-cache", \
	      .kind = OPTION_FLAG, \
	      .offset = offsetof(type, field.no_unwind_cache), \
	      .help = "neither read nor write the compiled unwind tables in /var/cache/sonde or ~/.cache/sonde" }, \
	    OPTION_ROW_RUNTIMES(offsetof(type, field.runtimes), NULL)

#define RECORDING_PERF_MAP_OPTION(type, field) \
	{ .name = "perf-map", .kind = OPTION_FLAG, .offset = offsetof(type, field.perf_map), \
	  .help = "with -p: have .NET processes (8 and newer) list their functions in /tmp/perf-PID.map while they are measured, so that " \
		  "they have names. They are asked by their diagnostics socket, without a restart; the file stays" }

#define RECORDING_OUTPUT_OPTIONS(type, field) \
	{ .group = "How it is written", \
	  .letter = 'f', \
	  .name = "folded", \
	  .kind = OPTION_FLAG, \
	  .offset = offsetof(type, field.folded), \
	  .help = "one line per stack, for flame graphs, instead of text; and no header" }, \
	    { .letter = 'd', \
	      .name = "delimited", \
	      .kind = OPTION_FLAG, \
	      .offset = offsetof(type, field.delimited), \
	      .help = "a line between kernel and user frames" }, \
	    { .letter = 'a', \
	      .name = "annotations", \
	      .kind = OPTION_FLAG, \
	      .offset = offsetof(type, field.annotate), \
	      .help = "add _[k] to kernel frames" }, \
	    { .name = "offsets", \
	      .kind = OPTION_FLAG, \
	      .offset = offsetof(type, field.offsets), \
	      .help = "function+offset, and a stack of its own for every address" }, \
	    { .name = "lines", \
	      .kind = OPTION_FLAG, \
	      .offset = offsetof(type, field.lines), \
	      .help = "also inlined functions and source lines, by the programs' debug info; pprof and HTML have them anyway" }, \
	    { .name = "no-lines", \
	      .kind = OPTION_FLAG, \
	      .offset = offsetof(type, field.no_lines), \
	      .excludes = "lines", \
	      .instead = "leave both out to have lines where the format shows them", \
	      .help = "functions by their symbols only: faster" }, \
	    OPTION_ROW_SOURCE(offsetof(type, field.source_lines), OPTION_SOURCE_IN_PAGES \
			      ". In text of leak and alloc, such lines below each frame"), \
	    { .name = "debuginfod-timeout", \
	      .metavar = "SECONDS", \
	      .kind = OPTION_NUMBER, \
	      .offset = offsetof(type, field.debuginfod_timeout_s), \
	      .max = RECORDING_MAX_TIMEOUT_S, \
	      .help = "wait so long for debug files from the servers in $DEBUGINFOD_URLS, after the last sample; 5. 0: use what has come " \
		      "by then" }, \
	    { .name = "vmlinux", \
	      .metavar = "FILE", \
	      .kind = OPTION_TEXT, \
	      .offset = offsetof(type, field.vmlinux), \
	      .values = OPTION_VALUES_FILE, \
	      .help = "the running kernel's file with debug info, for its source lines; it is looked for where perf looks" }, \
	    { .name = "threads", \
	      .kind = OPTION_FLAG, \
	      .offset = offsetof(type, field.threads), \
	      .help = "keep the threads of a process apart" }, \
	    { .letter = 'o', \
	      .name = "output", \
	      .metavar = "FILE", \
	      .kind = OPTION_TEXTS, \
	      .offset = offsetof(type, field.outputs), \
	      .values = OPTION_VALUES_FILE, \
	      .help = "write to FILE, in the format that its suffix names; - is standard output; may be repeated" }, \
	    { .name = "format", \
	      .metavar = "NAME", \
	      .kind = OPTION_TEXT, \
	      .offset = offsetof(type, field.format), \
	      .value_name = profile_write_format_at, \
	      .excludes = "folded", \
	      .instead = "-f is --format folded without the header", \
	      .help = "write in this format, whatever the suffix says" }

#define RECORDING_EVENTS_OPTION(type, field) \
	{ .name = "events", .metavar = "FILE", .kind = OPTION_TEXT, .offset = offsetof(type, field.events), .values = OPTION_VALUES_FILE, \
	  .help = "also write each switch and wake-up to FILE, as JSON lines, for time lines" }

/* Checks what the table cannot express: formats, suffixes, lengths. 0; -EINVAL with a line. */
MUST_CHECK int recording_check(const struct recording *recording, struct diag *diag);
/* The library's options for this recording; the verb adds its own. Borrows the recording and the line. */
struct sonde_session_options recording_options(const struct recording *recording, const char *command_line);

/* The words of a verb for its messages. */
struct recording_words {
	const char *measuring;        /* the header's first words, "Sampling at 49 Hertz of"; -f omits the header */
	bool is_attached;             /* the header is memleak's: "Attaching to pid 185, Ctrl+C to quit." */
	const char *threads, *place;  /* "user", "CPU#3"; NULL: all of them, everywhere */
	const char *no_samples;       /* for an empty profile: "nothing of what was asked for ran on a CPU" */
};
/* Records the profile and writes it. Returns the exit code. */
int recording_run(const struct verb *verb, const struct recording *recording, const struct sonde_session_options *options,
		  const struct recording_words *words);
