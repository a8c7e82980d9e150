// SPDX-License-Identifier: Apache-2.0
/* sonde convert: a profile from one format to others. */
#include <errno.h>
#include <string.h>

#include <sonde/sonde.h>

#include "cli/option_rows.h"
#include "cli/output.h"
#include "cli/profile_files.h"
#include "cli/verbs.h"

#define AT(field)    offsetof(struct convert_arguments, field)
#define FIELD(field) .offset = AT(field)

struct convert_arguments {
	const char *input, *output;
	struct option_texts outputs;
	const char *from, *format, *value;
	bool delimited, annotate, offsets, threads, no_lines, timestamps;
	uint64_t memory_mib, source_lines;
};

static const struct option_spec options[] = {
	{ .group = "What is read",
	  .metavar = "INPUT",
	  .kind = OPTION_TEXT,
	  FIELD(input),
	  .values = OPTION_VALUES_FILE,
	  .help = "the profile, gzipped or not; - is standard input. Its format is found out by what stands in it" },
	{ .name = "from",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(from),
	  .value_name = profile_read_format_at,
	  .help = "the format of INPUT, whatever it looks like" },
	{ .name = "no-lines",
	  .kind = OPTION_FLAG,
	  FIELD(no_lines),
	  .help = "of perf.data: do not look up source lines and inlined functions" },
	{ .name = "timestamps",
	  .kind = OPTION_FLAG,
	  FIELD(timestamps),
	  .help = "of perf.data: keep the time of each sample, for the formats that can carry it" },
	PROFILE_MEMORY_OPTION(struct convert_arguments, memory_mib),
	{ .group = "How it is written",
	  .metavar = "OUTPUT",
	  .kind = OPTION_TEXT,
	  FIELD(output),
	  .values = OPTION_VALUES_FILE,
	  .help = "the file to write, in the format that its suffix names; - is standard output, which it is without this, too" },
	OPTION_ROW_OUTPUT(AT(outputs), "the same; may be repeated"),
	OPTION_ROW_FORMAT(AT(format), profile_write_format_at, OPTION_FORMAT_ANY),
	{ .name = "value",
	  .metavar = "TYPE",
	  .kind = OPTION_TEXT,
	  FIELD(value),
	  .help = "which of several values is shown by formats with room for one, such as alloc_space, count or time; the one that INPUT "
		  "says" },
	{ .letter = 'd', .name = "delimited", .kind = OPTION_FLAG, FIELD(delimited), .help = "a line between kernel and user frames" },
	{ .letter = 'a', .name = "annotations", .kind = OPTION_FLAG, FIELD(annotate), .help = "add _[k] to kernel frames" },
	{ .name = "offsets", .kind = OPTION_FLAG, FIELD(offsets), .help = "function+offset, and a stack of its own for every address" },
	{ .name = "threads", .kind = OPTION_FLAG, FIELD(threads), .help = "keep the threads of a process apart" },
	OPTION_ROW_SOURCE(AT(source_lines), OPTION_SOURCE_IN_PAGES ", and INPUT says which files these are: look before you pass it on"),
};

static const struct verb_example examples[] = {
	{ "sonde convert cpu.pb.gz cpu.html", "a flame graph of a pprof file" },
	{ "sonde convert x.json x.pb.gz", "for go tool pprof" },
	{ "sonde convert perf.data x.html", "a flame graph of what perf record recorded" },
	{ "sonde convert --source 3 cpu.pb.gz cpu.html", "the same with the source of the hottest functions" },
	{ "sonde convert x.folded -o x.html -o x.pb.gz", "several at once" },
	{ "sonde convert - --format folded <x.pb.gz", "from and to pipes" },
	{ NULL, NULL },
};

/* Returns an exit code. */
static int convert(struct sonde_profile *profile, const struct convert_arguments *arguments)
{
	const struct sonde_read_options read = { .size = sizeof(read),
						 .format = arguments->from,
						 .no_lines = arguments->no_lines,
						 .timestamps = arguments->timestamps,
						 .on_bytes = arguments->source_lines ? NULL : profile_confine_reading };
	const struct sonde_write_options write = {
		.size = sizeof(write),
		.format = arguments->format,
		.value = arguments->value,
		.delimited = arguments->delimited,
		.annotate = arguments->annotate,
		.offsets = arguments->offsets,
		.threads = arguments->threads,
		.source_lines = (uint32_t)arguments->source_lines,
	};
	int code = profile_try_outputs(&convert_verb, profile, &arguments->outputs, arguments->format), err;

	if (code)
		return code;
	err = profile_read(profile, arguments->input, &read);
	if (err)
		return profile_failed(&convert_verb, profile, err);
	code = profile_write_all(&convert_verb, profile, &arguments->outputs, &write);
	return code || !profile_is_empty(profile) ? code : profile_no_samples(arguments->input);
}

/* Adds OUTPUT to the list of -o. Without any output: standard output. */
static int check(void *all, char *const *command, struct diag *diag)
{
	struct convert_arguments *arguments = all;
	struct option_texts *outputs = &arguments->outputs;

	if (!arguments->input)
		return diag_errno(diag, EINVAL, "name the profile to read: sonde convert INPUT OUTPUT (- is standard input)");
	if (arguments->output || !outputs->nr) {
		if (outputs->nr == OPTION_MAX_TEXTS)
			return diag_errno(diag, EINVAL, "at most %d outputs", OPTION_MAX_TEXTS);
		outputs->texts[outputs->nr++] = arguments->output ? arguments->output : "-";
	}
	return profile_check_outputs(outputs, arguments->format, diag);
}

static int convert_run(void *all, const char *command_line)
{
	const struct convert_arguments *arguments = all;
	struct sonde_profile *profile = sonde_profile_new();
	int code;

	profile_confine(arguments->memory_mib, &arguments->outputs);
	code = profile ? convert(profile, arguments) : output_no_memory();
	sonde_profile_free(profile);
	return code;
}

const struct verb convert_verb = {
	.name = "convert",
	.summary = "a profile from one file format to others",
	.description = "Reads a profile, of sonde or of another profiler, and writes it in other formats. What a format holds and others "
		       "cannot is counted and "
		       "reported on standard error.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.arguments_bytes = sizeof(struct convert_arguments),
	.defaults = &(const struct convert_arguments){ .memory_mib = PROFILE_MEMORY_MIB },
	.check = check,
	.run = convert_run,
};
