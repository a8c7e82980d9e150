// SPDX-License-Identifier: Apache-2.0
/* What every verb does with its command line before its own work. */
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

#define MAX_COMMAND_LINE_BYTES ((size_t)4 << 20)

/* The words, separated by blanks. */
static void fill_command_line(int argc, char **argv, struct buffer *buffer)
{
	buffer_text(buffer, "sonde");
	for (int i = 0; i < argc; i++)
		buffer_printf(buffer, " %s", argv[i]);
}

static int parse_and_run(const struct verb *verb, int argc, char **argv, void *arguments)
{
	struct buffer command_line = BUFFER_INIT(MAX_COMMAND_LINE_BYTES);
	struct option_result result;
	struct diag diag = { 0 };
	int code, err = option_parse(verb, argc, argv, arguments, &result, &diag);

	if (!err && (result.help || result.version))
		return output_help(verb, &result);
	if (!err && verb->check)
		err = verb->check(arguments, result.command, &diag);
	if (err)
		return output_usage(verb, diag.text);
	fill_command_line(argc, argv, &command_line);
	code = verb->run(arguments, command_line.err ? NULL : command_line.data);
	buffer_done(&command_line);
	return code;
}

int verb_run(const struct verb *verb, int argc, char **argv)
{
	CLEANUP(freep) void *arguments = calloc(1, verb->arguments_bytes);

	if (!arguments)
		return output_no_memory();
	if (verb->defaults)
		memcpy(arguments, verb->defaults, verb->arguments_bytes);
	return parse_and_run(verb, argc, argv, arguments);
}
