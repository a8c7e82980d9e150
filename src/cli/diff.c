// SPDX-License-Identifier: Apache-2.0
/* sonde diff: what changed between two profiles. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/option_rows.h"
#include "cli/output.h"
#include "cli/pager.h"
#include "cli/profile_files.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

#define AT(field)    offsetof(struct diff_arguments, field)
#define FIELD(field) .offset = AT(field)

struct diff_arguments {
	const char *before, *after, *from, *value, *format;
	struct option_texts outputs;
	uint64_t max_lines, memory_mib;
	struct sonde_show_options show; /* made from the fields above */
};

static const struct option_spec options[] = {
	{ .group = "What is compared",
	  .metavar = "BEFORE",
	  .kind = OPTION_TEXT,
	  FIELD(before),
	  .values = OPTION_VALUES_FILE,
	  .help = "a profile, in any format that is read; - is standard input" },
	{ .metavar = "AFTER", .kind = OPTION_TEXT, FIELD(after), .values = OPTION_VALUES_FILE, .help = "another one" },
	{ .name = "from",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(from),
	  .value_name = profile_read_format_at,
	  .help = "the format of both, whatever they look like" },
	{ .name = "value",
	  .metavar = "TYPE",
	  .kind = OPTION_TEXT,
	  FIELD(value),
	  .help = "which of several values is compared, such as alloc_space, count or time; the one that AFTER says" },
	PROFILE_MEMORY_OPTION(struct diff_arguments, memory_mib),
	{ .group = "How it is shown",
	  .letter = 'n',
	  .name = "lines",
	  .metavar = "N",
	  .kind = OPTION_NUMBER,
	  FIELD(max_lines),
	  .min = 1,
	  .max = UINT32_MAX,
	  .help = "so many functions in the table; 40" },
	OPTION_ROW_OUTPUT(AT(outputs),
			  "write a profile of both, in the format that the suffix names, instead of the table; may be repeated"),
	OPTION_ROW_FORMAT(AT(format), profile_write_format_at, OPTION_FORMAT_ANY),
};

static const struct verb_example examples[] = {
	{ "sonde diff monday.json tuesday.json", "what takes more now, what less" },
	{ "sonde diff old.pb.gz new.pb.gz -o diff.html", "as a flame graph in two colours" },
	{ NULL, NULL },
};

static int print_table(struct sonde_profile *profile, const struct sonde_show_options *show)
{
	const char *text;
	int err = sonde_profile_show(profile, show, &text);

	return err ? profile_failed(&diff_verb, profile, err) : output_result_text(text);
}

/* Reads both profiles; `after` becomes the difference. Returns an exit code. */
static int compare(struct sonde_profile *before, struct sonde_profile *after, const struct diff_arguments *arguments)
{
	struct sonde_read_options read = { .size = sizeof(read),
					   .format = arguments->from,
					   .on_bytes = profile_confine_reading,
					   .on_bytes_arg = (void *)(uintptr_t)arguments->after };
	const struct sonde_write_options write = { .size = sizeof(write), .format = arguments->format };
	int code = profile_try_outputs(&diff_verb, after, &arguments->outputs, arguments->format), err;

	if (code)
		return code;
	err = profile_read(before, arguments->before, &read);
	if (err)
		return profile_failed(&diff_verb, before, err);
	read.on_bytes_arg = NULL;
	err = profile_read(after, arguments->after, &read);
	if (err)
		return profile_failed(&diff_verb, after, err);
	if (profile_is_empty(before) || profile_is_empty(after))
		return profile_no_samples(profile_is_empty(before) ? arguments->before : arguments->after);
	err = sonde_profile_diff(after, before, arguments->value);
	if (err)
		return profile_failed(&diff_verb, after, err);
	return arguments->outputs.nr ? profile_write_all(&diff_verb, after, &arguments->outputs, &write)
				     : print_table(after, &arguments->show);
}

static int check(void *all, char *const *command, struct diag *diag)
{
	struct diff_arguments *arguments = all;

	arguments->show = (struct sonde_show_options){
		.size = sizeof(arguments->show),
		.view = SONDE_VIEW_CHANGES,
		.max_lines = (uint32_t)arguments->max_lines,
		.width = terminal_width(),
		.colour = output_colour(STDOUT_FILENO),
	};
	if (!arguments->before || !arguments->after)
		return diag_errno(diag, EINVAL, "name two profiles: sonde diff BEFORE AFTER");
	if (!strcmp(arguments->before, "-") && !strcmp(arguments->after, "-"))
		return diag_errno(diag, EINVAL, "only one of them can be standard input");
	if (arguments->format && !arguments->outputs.nr)
		return diag_errno(diag, EINVAL, "--format is for -o: say where to write");
	return profile_check_outputs(&arguments->outputs, arguments->format, diag);
}

static int diff_run(void *all, const char *command_line)
{
	const struct diff_arguments *arguments = all;
	struct sonde_profile *before = sonde_profile_new(), *after = sonde_profile_new();
	struct pager pager = arguments->outputs.nr ? (struct pager){ 0 } : pager_start();
	int code;

	profile_confine(arguments->memory_mib, &arguments->outputs);
	code = before && after ? compare(before, after, arguments) : output_no_memory();
	sonde_profile_free(before);
	sonde_profile_free(after);
	pager_wait(&pager);
	return code;
}

const struct verb diff_verb = {
	.name = "diff",
	.summary = "what changed between two profiles",
	.description = "Compares two profiles by shares of their totals, so that they need not be of the same length. The table has the "
		       "change of each function, self "
		       "and total, in points of percent, the greatest first; what is within two standard deviations of the noise of counts "
		       "has a ~. Stacks are "
		       "matched by the names in them: addresses differ between builds. Histograms stand side by side, with what became of "
		       "their tails.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.arguments_bytes = sizeof(struct diff_arguments),
	.defaults = &(const struct diff_arguments){ .memory_mib = PROFILE_MEMORY_MIB },
	.check = check,
	.run = diff_run,
};
