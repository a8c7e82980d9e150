// SPDX-License-Identifier: Apache-2.0
#include "cli/option.h"

#include <string.h>

#define WIDTH       80
#define HELP_COLUMN 30

static void blanks(struct buffer *buffer, size_t nr)
{
	buffer_printf(buffer, "%*s", (int)nr, "");
}

static void heading(struct buffer *buffer, bool colour, const char *text)
{
	buffer_printf(buffer, "\n%s%s:%s\n", colour ? "\033[1m" : "", text, colour ? "\033[0m" : "");
}

void option_wrap(struct buffer *buffer, const char *text, size_t column, size_t indent)
{
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " \n");

		if (!first && column + 1 + length > WIDTH - 1) {
			buffer_text(buffer, "\n");
			blanks(buffer, indent);
			column = indent;
			first = true;
		}
		if (!first)
			buffer_text(buffer, " ");
		buffer_append(buffer, text, length);
		column += length + !first;
		first = false;
		text += length;
		if (!strncmp(text, "\n\n", 2)) { /* an empty line separates paragraphs */
			buffer_text(buffer, "\n\n");
			blanks(buffer, indent);
			column = indent;
			first = true;
		}
		text += strspn(text, " \n");
	}
	buffer_text(buffer, "\n");
}

void option_synopsis(const struct verb *verb, struct buffer *buffer)
{
	buffer_text(buffer, "[OPTION...]");
	for (size_t i = 0; i < verb->nr_options; i++) {
		if (!verb->options[i].name)
			buffer_printf(buffer, " [%s]", verb->options[i].metavar);
	}
	if (verb->takes_command)
		buffer_text(buffer, " [-- COMMAND [ARGUMENT...]]");
	if (verb->has_verbs)
		buffer_text(buffer, " VERB [ARGUMENT...]");
}

static void option_line(const struct option_spec *spec, struct buffer *buffer)
{
	size_t start = buffer->size, used;

	if (spec->letter)
		buffer_printf(buffer, "  -%c, --%s", spec->letter, spec->name);
	else if (spec->name)
		buffer_printf(buffer, "      --%s", spec->name);
	else
		buffer_printf(buffer, "  %s", spec->metavar);
	if (spec->name && spec->metavar)
		buffer_printf(buffer, spec->instead_of_none ? " [%s]" : " %s", spec->metavar);
	used = buffer->size - start;
	if (used + 2 > HELP_COLUMN) {
		buffer_text(buffer, "\n");
		used = 0;
	}
	blanks(buffer, HELP_COLUMN - used);
	option_wrap(buffer, spec->help, HELP_COLUMN, HELP_COLUMN);
}

static void example_lines(const struct verb *verb, bool colour, struct buffer *buffer)
{
	size_t width = 0;

	if (!verb->examples)
		return;
	for (const struct verb_example *e = verb->examples; e->command; e++)
		width = strlen(e->command) > width ? strlen(e->command) : width;
	heading(buffer, colour, "Examples");
	for (const struct verb_example *e = verb->examples; e->command; e++)
		buffer_printf(buffer, "  %-*s  # %s\n", (int)width, e->command, e->text);
}

void option_help(const struct verb *verb, bool colour, struct buffer *buffer)
{
	const struct option_spec *spec;

	buffer_printf(buffer, "Usage: sonde %s%s", verb->name ? verb->name : "", verb->name ? " " : "");
	option_synopsis(verb, buffer);
	buffer_text(buffer, "\n\n");
	option_wrap(buffer, verb->description, 0, 0);
	for (size_t i = 0; (spec = option_at(verb, i)); i++) {
		if (spec->group)
			heading(buffer, colour, spec->group);
		if (!spec->hidden)
			option_line(spec, buffer);
	}
	example_lines(verb, colour, buffer);
}
