// SPDX-License-Identifier: Apache-2.0
/* sonde show: a profile in the terminal. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/output.h"
#include "cli/pager.h"
#include "cli/profile_files.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

#define FIELD(field) .offset = offsetof(struct show_arguments, field)
#define MAX_LINES UINT32_MAX
#define DEFAULT_MIN_PERCENT 0.5
#define THOUSAND 1000

struct show_arguments {
	const char *input, *from, *value;
	bool top, tree;
	const char *callers, *callees, *peek, *by, *annotate, *min, *sort, *focus, *ignore;
	uint64_t max_lines, memory_mib;
	struct sonde_show_options show; /* made from the fields above */
};

static const char *table_at(uint32_t i)
{
	static const char *const words[] = { "comm", "process", "thread", "cpu", "file", "language", "state", "label", "span", "trace" };

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

static const char *column_at(uint32_t i)
{
	static const char *const words[] = { "self", "total" };

	return i < ARRAY_SIZE(words) ? words[i] : NULL;
}

static const struct option_spec options[] = {
	{ .group = "What is read",
	  .metavar = "FILE",
	  .kind = OPTION_TEXT,
	  FIELD(input),
	  .values = OPTION_VALUES_FILE,
	  .help = "the profile, in any format that is read, gzipped or not; - is standard input" },
	{ .name = "from",
	  .metavar = "NAME",
	  .kind = OPTION_TEXT,
	  FIELD(from),
	  .value_name = profile_read_format_at,
	  .help = "the format of FILE, whatever it looks like" },
	{ .name = "value",
	  .metavar = "TYPE",
	  .kind = OPTION_TEXT,
	  FIELD(value),
	  .help = "which of several values is shown, such as alloc_space, count or time; the one that FILE says" },
	PROFILE_MEMORY_OPTION(struct show_arguments, memory_mib),
	{ .group = "What is shown",
	  .name = "top",
	  .kind = OPTION_FLAG,
	  FIELD(top),
	  .help = "the functions, those that took most themselves (self) first" },
	{ .name = "tree", .kind = OPTION_FLAG, FIELD(tree), .help = "the call tree, root first; a function that calls itself is one line" },
	{ .name = "callers", .metavar = "FUNC", .kind = OPTION_TEXT, FIELD(callers), .help = "the tree of those who call FUNC" },
	{ .name = "callees", .metavar = "FUNC", .kind = OPTION_TEXT, FIELD(callees), .help = "the tree of what FUNC calls" },
	{ .name = "peek", .metavar = "FUNC", .kind = OPTION_TEXT, FIELD(peek), .help = "both trees: callers of FUNC, and what it calls" },
	{ .name = "by",
	  .metavar = "WHAT",
	  .kind = OPTION_TEXT,
	  FIELD(by),
	  .value_name = table_at,
	  .help = "a table by comm (all processes of one name), process, thread, cpu, file, language, state "
		  "(what was waited for), label, span (the requests that OpenTelemetry traces, see `sonde profile`) or trace" },
	{ .name = "annotate",
	  .metavar = "FUNC",
	  .kind = OPTION_TEXT,
	  FIELD(annotate),
	  .help = "source lines and instructions of FUNC, or of all functions with that in their names, with their shares; from files of "
		  "this machine" },
	{ .letter = 'n',
	  .name = "lines",
	  .metavar = "N",
	  .kind = OPTION_NUMBER,
	  FIELD(max_lines),
	  .min = 1,
	  .max = MAX_LINES,
	  .help = "so many lines of a table or tree" },
	{ .name = "sort",
	  .metavar = "COLUMN",
	  .kind = OPTION_TEXT,
	  FIELD(sort),
	  .value_name = column_at,
	  .help = "functions, files and languages by self or by total; self" },
	{ .name = "min",
	  .metavar = "PERCENT",
	  .kind = OPTION_TEXT,
	  FIELD(min),
	  .help = "leave out branches of a tree below this share; 0.5" },
	{ .group = "Of which samples",
	  .name = "focus",
	  .metavar = "REGEX",
	  .kind = OPTION_TEXT,
	  FIELD(focus),
	  .help = "only those with a function on the stack whose name matches; shares are of these" },
	{ .name = "ignore",
	  .metavar = "REGEX",
	  .kind = OPTION_TEXT,
	  FIELD(ignore),
	  .help = "none of those with a function on the stack whose name matches" },
};

static const struct verb_example examples[] = {
	{ "sonde show cpu.pb.gz", "what was recorded, what was lost, which programs, which functions" },
	{ "sonde show --tree x.json | less", "the call tree" },
	{ "sonde show --callers malloc x.json", "who calls malloc" },
	{ "sonde show --annotate parse x.json", "where in parse the time goes" },
	{ NULL, NULL },
};

/* "0.25", "2": at most three decimals. */
static int parse_percent(const char *text, double *ret_percent)
{
	const char *dot = strchr(text, '.');
	char whole[16] = "0", part[4] = "000";
	uint64_t units, thousandths;

	if (dot && (strlen(dot + 1) > 3 || !dot[1]))
		return -EINVAL;
	snprintf(whole, sizeof(whole), "%.*s", dot ? (int)(dot - text) : 15, text);
	if (dot)
		memcpy(part, dot + 1, strlen(dot + 1));
	if (number_u64(whole, 100, &units) || number_u64(part, THOUSAND - 1, &thousandths))
		return -EINVAL;
	*ret_percent = (double)units + (double)thousandths / THOUSAND;
	return *ret_percent <= 100 ? 0 : -EINVAL;
}

/* At most one view. */
static int choose_view(struct show_arguments *arguments, struct diag *diag)
{
	const struct {
		bool is_given;
		enum sonde_view view;
		const char *what;
	} views[] = {
		{ arguments->top, SONDE_VIEW_TOP, NULL },
		{ arguments->tree, SONDE_VIEW_TREE, NULL },
		{ arguments->callers, SONDE_VIEW_CALLERS, arguments->callers },
		{ arguments->callees, SONDE_VIEW_CALLEES, arguments->callees },
		{ arguments->peek, SONDE_VIEW_PEEK, arguments->peek },
		{ arguments->by, SONDE_VIEW_BY, arguments->by },
		{ arguments->annotate, SONDE_VIEW_CODE, arguments->annotate },
	};
	uint32_t nr_given = 0;

	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		if (!views[i].is_given)
			continue;
		arguments->show.view = views[i].view;
		arguments->show.what = views[i].what;
		nr_given++;
	}
	if (nr_given > 1)
		return diag_errno(diag, EINVAL, "one of --top, --tree, --callers, --callees, --peek, --by, --annotate at a time");
	return 0;
}

static int check(void *all, char *const *command, struct diag *diag)
{
	struct show_arguments *arguments = all;

	arguments->show = (struct sonde_show_options){
		.size = sizeof(arguments->show),
		.value = arguments->value,
		.max_lines = (uint32_t)arguments->max_lines,
		.width = terminal_width(),
		.min_percent = DEFAULT_MIN_PERCENT,
		.colour = output_colour(STDOUT_FILENO),
		.sort_total = arguments->sort && !strcmp(arguments->sort, "total"),
		.focus = arguments->focus,
		.ignore = arguments->ignore,
	};
	if (!arguments->input)
		return diag_errno(diag, EINVAL, "name the profile to show: sonde show FILE (- is standard input)");
	if (arguments->sort && strcmp(arguments->sort, "self") != 0 && !arguments->show.sort_total)
		return diag_errno(diag, EINVAL, "--sort is self or total, not '%.40s'", arguments->sort);
	if (arguments->min && parse_percent(arguments->min, &arguments->show.min_percent))
		return diag_errno(diag, EINVAL, "--min takes a percentage such as 0.5, not '%.40s'", arguments->min);
	return choose_view(arguments, diag);
}

/* Returns an exit code. */
static int show(struct sonde_profile *profile, const struct show_arguments *arguments)
{
	const struct sonde_read_options read = { .size = sizeof(read),
						 .format = arguments->from,
						 .on_bytes = arguments->annotate ? NULL : profile_confine_reading };
	const char *text;
	int err = profile_read(profile, arguments->input, &read), code;

	if (!err)
		err = sonde_profile_show(profile, &arguments->show, &text);
	if (err)
		return profile_failed(&show_verb, profile, err);
	code = output_result_text(text);
	return code || !profile_is_empty(profile) ? code : profile_no_samples(arguments->input);
}

static int show_run(void *all, const char *command_line)
{
	const struct show_arguments *arguments = all;
	struct sonde_profile *profile = sonde_profile_new();
	struct pager pager = pager_start();
	int code;

	profile_confine(arguments->memory_mib, NULL);
	code = profile ? show(profile, arguments) : output_no_memory();
	sonde_profile_free(profile);
	pager_wait(&pager);
	return code;
}

const struct verb show_verb = {
	.name = "show",
	.summary = "a profile in the terminal",
	.description = "Reads a profile, of sonde or of another profiler, and shows it as text: by default what was recorded and lost, the "
		       "programs and the hottest functions. Shares are of all samples. On a terminal lines end at its width, "
		       "and what is longer than it goes through $SONDE_PAGER, $PAGER or less; into a pipe names are written whole.",
	.options = options,
	.nr_options = ARRAY_SIZE(options),
	.examples = examples,
	.arguments_bytes = sizeof(struct show_arguments),
	.defaults = &(const struct show_arguments){ .memory_mib = PROFILE_MEMORY_MIB },
	.check = check,
	.run = show_run,
};
