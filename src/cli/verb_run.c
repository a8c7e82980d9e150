// SPDX-License-Identifier: Apache-2.0
/* What every verb does with its command line before its own work. */
#include "cli/verbs.h"

#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

#define MAX_COMMAND_LINE_BYTES ((size_t)4 << 20)

/* The bytes of the word before a secret, if it holds one. */
static size_t shown_bytes(const struct option_result *result, const char *word)
{
	size_t size = strlen(word);

	for (uint32_t i = 0; i < result->nr_secrets; i++) {
		if (result->secrets[i] >= word && result->secrets[i] < word + size)
			return (size_t)(result->secrets[i] - word);
	}
	return size;
}

/* The words, separated by blanks. */
static void fill_command_line(const struct option_result *result, int argc, char **argv, struct buffer *buffer)
{
	buffer_text(buffer, "sonde");
	for (int i = 0; i < argc; i++) {
		size_t shown = shown_bytes(result, argv[i]);

		buffer_printf(buffer, " %.*s%s", (int)shown, argv[i], argv[i][shown] ? "..." : "");
	}
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
	fill_command_line(&result, argc, argv, &command_line);
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
