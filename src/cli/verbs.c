// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs.h"

#include <string.h>

#include <sonde/sonde.h>

static const struct verb *const verbs[] = { &profile_verb, &offcpu_verb, &runq_verb, &wall_verb, &files_verb,   &io_verb,   &leak_verb,
					    &alloc_verb,   &trace_verb,	 &show_verb, &diff_verb, &convert_verb, &stat_verb, &agent_verb,
					    &doctor_verb };

const struct verb *verb_at(size_t i)
{
	return i < ARRAY_SIZE(verbs) ? verbs[i] : NULL;
}

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!strcmp(verbs[i]->name, name))
			return verbs[i];
	}
	return NULL;
}

static const char *name_at(const void *names, size_t i)
{
	if (i == ARRAY_SIZE(verbs))
		return "help";
	return i < ARRAY_SIZE(verbs) ? verbs[i]->name : NULL;
}

const char *verb_nearest(const char *name)
{
	return option_nearest(name, name_at, NULL);
}

bool exit_code_at(size_t i, int *ret_code, const char **ret_text)
{
	static const struct {
		int code;
		const char *text;
	} codes[] = {
		{ SONDE_EXIT_REPORT, "the report was written" },
		{ SONDE_EXIT_FAILED, "failed: a process that is not there, a file that cannot be written" },
		{ SONDE_EXIT_USAGE, "the command line is wrong" },
		{ SONDE_EXIT_NOT_PERMITTED, "not permitted: the message names the capability" },
		{ SONDE_EXIT_KERNEL_CANNOT, "this kernel cannot" },
		{ SONDE_EXIT_NO_SAMPLES, "no samples; the empty report was written" },
		{ SONDE_EXIT_NOT_EXECUTABLE, "the command cannot be executed" },
		{ SONDE_EXIT_NO_COMMAND, "there is no such command" },
	};

	if (i >= ARRAY_SIZE(codes))
		return false;
	*ret_code = codes[i].code;
	*ret_text = codes[i].text;
	return true;
}

void sonde_help(bool colour, struct buffer *buffer)
{
	const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "", *text;
	const struct verb *verb;
	int code;

	option_help(&sonde_verb, colour, buffer);
	buffer_printf(buffer, "\n%sVerbs:%s\n", bold, plain);
	for (size_t i = 0; (verb = verb_at(i)); i++)
		buffer_printf(buffer, "  %-11s%s\n", verb->name, verb->summary);
	buffer_printf(buffer, "  %-11s%s\n", "help VERB", "the same as sonde VERB --help");
	buffer_printf(buffer, "\n%sExit codes:%s\n", bold, plain);
	for (size_t i = 0; exit_code_at(i, &code, &text); i++)
		buffer_printf(buffer, "  %-3d  %s\n", code, text);
}
