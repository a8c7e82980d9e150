// SPDX-License-Identifier: Apache-2.0
/* sonde: finds the verb and runs it. */
#include <string.h>

#include <sonde/sonde.h>

#include "cli/output.h"
#include "cli/signals.h"
#include "cli/verbs.h"

struct sonde_arguments {
	const char *completion, *man;
};

static const char *shell_name(uint32_t i)
{
	return i == 0 ? "bash" : i == 1 ? "zsh" : NULL;
}

static const struct option_spec sonde_options[] = {
	{ .group = "Options", .name = "completion", .metavar = "SHELL", .kind = OPTION_TEXT,
	  .offset = offsetof(struct sonde_arguments, completion), .value_name = shell_name,
	  .help = "print the completion script for bash or zsh; source <(sonde --completion bash)" },
	{ .name = "man", .metavar = "VERB", .kind = OPTION_TEXT, .offset = offsetof(struct sonde_arguments, man), .hidden = true,
	  .help = "print the manual page of a verb, or of sonde" },
};

const struct verb sonde_verb = {
	.summary = "where the time goes on this machine",
	.description = "sonde measures where the time goes, for every process on the machine, with no recompile, no restart and no agent "
		       "inside the programs. Results go to standard output or a file, everything else to standard error.",
	.options = sonde_options,
	.nr_options = ARRAY_SIZE(sonde_options),
	.has_verbs = true,
};

/* Fills and prints one text. */
static int print_text(void (*fill)(struct buffer *buffer))
{
	struct buffer buffer = BUFFER_INIT(1 << 20);
	int code;

	fill(&buffer);
	code = output_result(&buffer);
	buffer_done(&buffer);
	return code;
}

static void fill_version(struct buffer *buffer)
{
	buffer_printf(buffer, "sonde %s\n", sonde_version());
}

static void fill_sonde_help(struct buffer *buffer)
{
	sonde_help(output_colour(1), buffer);
}

static int print_verb(const struct verb *verb, bool man)
{
	struct buffer buffer = BUFFER_INIT(1 << 20);
	int code;

	if (man)
		verb_man(verb, &buffer);
	else
		option_help(verb, output_colour(1), &buffer);
	code = output_result(&buffer);
	buffer_done(&buffer);
	return code;
}

static int unknown_verb(const char *name)
{
	struct diag diag = { 0 };
	const char *nearest = verb_nearest(name);
	int err = diag_errno(&diag, 2, "there is no verb '%.60s'%s%s%s", name, nearest ? ": did you mean " : "", nearest ? nearest : "",
			     nearest ? "?" : "");

	return err ? output_usage(NULL, diag.text) : 0;
}

static int print_man(const char *name)
{
	const struct verb *verb = !strcmp(name, "sonde") ? &sonde_verb : verb_find(name);

	return verb ? print_verb(verb, true) : unknown_verb(name);
}

static int print_completion(const char *shell)
{
	if (!strcmp(shell, "bash"))
		return print_text(complete_bash);
	if (!strcmp(shell, "zsh"))
		return print_text(complete_zsh);
	return output_usage(NULL, "--completion knows the shells bash and zsh");
}

/* "sonde help [VERB]" */
static int run_help(int argc, char **argv)
{
	if (argc < 2)
		return print_text(fill_sonde_help);
	if (argc > 2)
		return output_usage(NULL, "help takes one verb");
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "sonde"))
		return print_text(fill_sonde_help);
	return verb_find(argv[1]) ? print_verb(verb_find(argv[1]), false) : unknown_verb(argv[1]);
}

static int run_verb(int argc, char **argv)
{
	const struct verb *verb = verb_find(argv[0]);

	if (!strcmp(argv[0], "help"))
		return run_help(argc, argv);
	return verb ? verb_run(verb, argc, argv) : unknown_verb(argv[0]);
}

static int no_verb(void)
{
	struct buffer buffer = BUFFER_INIT(1 << 16);

	sonde_help(output_colour(2), &buffer);
	output_talk(buffer.data);
	buffer_done(&buffer);
	return SONDE_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	struct sonde_arguments arguments = { 0 };
	struct option_result result;
	struct diag diag = { 0 };
	int code;

	if (sonde_is_worker(argc, argv, &code))
		return code;
	output_guard_standard_fds();
	signals_init();
	if (option_parse(&sonde_verb, argc, argv, &arguments, &result, &diag) < 0)
		return output_usage(NULL, diag.text);
	if (result.help)
		return print_text(fill_sonde_help);
	if (result.version)
		return print_text(fill_version);
	if (arguments.man)
		return print_man(arguments.man);
	if (arguments.completion)
		return print_completion(arguments.completion);
	return result.rest < argc ? run_verb(argc - result.rest, argv + result.rest) : no_verb();
}
