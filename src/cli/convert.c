// SPDX-License-Identifier: Apache-2.0
/* sonde convert: a profile from one format to others. */
#include <errno.h>
#include <string.h>

#include <sonde/sonde.h>

#include "cli/output.h"
#include "cli/profile_files.h"
#include "cli/verbs.h"

#define FIELD(field) .offset = offsetof(struct convert_arguments, field)

struct convert_arguments {
	const char *input, *output;
	struct option_texts outputs;
	const char *from, *format, *value;
	bool delimited, annotate, offsets, threads, no_lines, timestamps;
};

static const struct option_spec options[] = {
	{ .group = "What is read", .metavar = "INPUT", .kind = OPTION_TEXT, FIELD(input), .values = OPTION_VALUES_FILE,
	  .help = "the profile, gzipped or not; - is standard input. Its format is found out by what stands in it" },
	{ .name = "from", .metavar = "NAME", .kind = OPTION_TEXT, FIELD(from), .value_name = profile_read_format_at, .help = "the format of INPUT, whatever it looks like" },
	{ .name = "no-lines", .kind = OPTION_FLAG, FIELD(no_lines), .help = "of perf.data: do not look up source lines and inlined functions" },
	{ .name = "timestamps", .kind = OPTION_FLAG, FIELD(timestamps), .help = "of perf.data: keep the time of each sample, for the formats that can carry it" },
	{ .group = "How it is written", .metavar = "OUTPUT", .kind = OPTION_TEXT, FIELD(output), .values = OPTION_VALUES_FILE,
	  .help = "the file to write, in the format that its suffix names; - is standard output, which it is without this, too" },
	{ .letter = 'o', .name = "output", .metavar = "FILE", .kind = OPTION_TEXTS, FIELD(outputs), .values = OPTION_VALUES_FILE,
	  .help = "the same; may be repeated" },
	{ .name = "format", .metavar = "NAME", .kind = OPTION_TEXT, FIELD(format), .value_name = profile_write_format_at, .help = "write in this format, whatever the suffix says" },
	{ .name = "value", .metavar = "TYPE", .kind = OPTION_TEXT, FIELD(value),
	  .help = "which of several values is shown by formats with room for one, such as alloc_space, count or time; the one that INPUT says" },
	{ .letter = 'd', .name = "delimited", .kind = OPTION_FLAG, FIELD(delimited), .help = "a line between kernel and user frames" },
	{ .letter = 'a', .name = "annotations", .kind = OPTION_FLAG, FIELD(annotate), .help = "add _[k] to kernel frames" },
	{ .name = "offsets", .kind = OPTION_FLAG, FIELD(offsets), .help = "function+offset, and a stack of its own for every address" },
	{ .name = "threads", .kind = OPTION_FLAG, FIELD(threads), .help = "keep the threads of a process apart" },
};

static const struct verb_example examples[] = {
	{ "sonde convert cpu.pb.gz cpu.html", "a flame graph of a pprof file" },
	{ "sonde convert x.json x.pb.gz", "for go tool pprof" },
	{ "sonde convert perf.data x.html", "a flame graph of what perf record recorded" },
	{ "sonde convert x.folded -o x.html -o x.pb.gz", "several at once" },
	{ "sonde convert - --format folded <x.pb.gz", "from and to pipes" },
	{ NULL, NULL },
};

static int convert_run(const struct verb *verb, int argc, char **argv);

const struct verb convert_verb = {
	.name = "convert",
	.summary = "a profile from one file format to others",
	.description = "Reads a profile, of sonde or of another profiler, and writes it in other formats. What a format holds and others cannot is counted and "
		       "told on standard error.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.run = convert_run,
};

/* What is written of it. An exit code. */
static int write_outputs(struct sonde_profile *profile, const struct convert_arguments *arguments)
{
	const struct sonde_write_options write = {
		.size = sizeof(write),
		.format = arguments->format,
		.value = arguments->value,
		.delimited = arguments->delimited,
		.annotate = arguments->annotate,
		.offsets = arguments->offsets,
		.threads = arguments->threads,
	};

	return profile_write_all(&convert_verb, profile, &arguments->outputs, &write);
}

static int convert(const struct convert_arguments *arguments)
{
	const struct sonde_read_options read = { .size = sizeof(read), .format = arguments->from, .no_lines = arguments->no_lines, .timestamps = arguments->timestamps };
	struct sonde_profile *profile = sonde_profile_new();
	int err = profile ? 0 : -ENOMEM, code;

	if (!profile) {
		output_say("out of memory");
		return SONDE_EXIT_FAILED;
	}
	for (uint32_t i = 0; !err && i < arguments->outputs.nr; i++)
		err = sonde_profile_check_output(profile, arguments->outputs.texts[i], arguments->format);
	if (!err)
		err = profile_read(profile, arguments->input, &read);
	code = err ? profile_failed(&convert_verb, profile) : write_outputs(profile, arguments);
	if (!code && profile_is_empty(profile))
		code = profile_no_samples(arguments->input);
	sonde_profile_free(profile);
	return code;
}

/* OUTPUT is the first of -o; without any, standard output. */
static int gather_outputs(struct convert_arguments *arguments, struct diag *diag)
{
	struct option_texts *outputs = &arguments->outputs;

	if (!arguments->input)
		return diag_errno(diag, EINVAL, "name the profile to read: sonde convert INPUT OUTPUT (- is standard input)");
	if (arguments->output || !outputs->nr) {
		if (outputs->nr == OPTION_MAX_TEXTS)
			return diag_errno(diag, EINVAL, "at most %d outputs", OPTION_MAX_TEXTS);
		outputs->texts[outputs->nr++] = arguments->output ? arguments->output : "-";
	}
	for (uint32_t i = 0; i < outputs->nr; i++) {
		for (uint32_t k = 0; k < i; k++) {
			if (!strcmp(outputs->texts[i], outputs->texts[k]))
				return diag_errno(diag, EINVAL, "the output '%.80s' is given twice: leave one out", outputs->texts[i]);
		}
	}
	return 0;
}

static int convert_run(const struct verb *verb, int argc, char **argv)
{
	struct convert_arguments arguments = { 0 };
	struct option_result result;
	struct diag diag = { 0 };
	int err = option_parse(verb, argc, argv, &arguments, &result, &diag);

	if (!err && (result.help || result.version))
		return output_help(verb, &result);
	if (!err)
		err = gather_outputs(&arguments, &diag);
	return err ? output_usage(verb, diag.text) : convert(&arguments);
}
