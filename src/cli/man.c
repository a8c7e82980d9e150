// SPDX-License-Identifier: Apache-2.0
/* Manual pages in man(7) macros. They contain no date: the same source produces the same bytes. */
#include "cli/verbs.h"

#include <string.h>

#include <sonde/sonde.h>

/* Appends text literally: without escapes, without requests at the start of a line, with hyphens that can be copied into a shell. */
static void roff_text(struct buffer *buffer, const char *text)
{
	bool line_start = true;

	for (; *text; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			buffer_text(buffer, "\\&");
		line_start = *text == '\n';
		if (*text == '\\')
			buffer_text(buffer, "\\e");
		else if (*text == '-')
			buffer_text(buffer, "\\-");
		else
			buffer_append(buffer, text, 1);
	}
}

static void roff_paragraphs(struct buffer *buffer, const char *text)
{
	const char *gap;

	while ((gap = strstr(text, "\n\n"))) {
		struct buffer paragraph = BUFFER_INIT(1 << 16);

		buffer_append(&paragraph, text, (size_t)(gap - text));
		roff_text(buffer, paragraph.data ? paragraph.data : "");
		buffer_text(buffer, "\n.PP\n");
		buffer_done(&paragraph);
		text = gap + 2;
	}
	roff_text(buffer, text);
	buffer_text(buffer, "\n");
}

static void man_option(const struct option_spec *spec, struct buffer *buffer)
{
	buffer_text(buffer, ".TP\n");
	if (spec->letter)
		buffer_printf(buffer, "\\fB\\-%c\\fR, ", spec->letter);
	if (spec->name) {
		buffer_text(buffer, "\\fB\\-\\-");
		roff_text(buffer, spec->name);
		buffer_text(buffer, "\\fR");
	}
	if (spec->metavar) {
		buffer_text(buffer, spec->name ? " \\fI" : "\\fI");
		roff_text(buffer, spec->metavar);
		buffer_text(buffer, "\\fR");
	}
	buffer_text(buffer, "\n");
	roff_text(buffer, spec->help);
	buffer_text(buffer, ".\n");
}

static void man_options(const struct verb *verb, struct buffer *buffer)
{
	const struct option_spec *spec;

	buffer_text(buffer, ".SH OPTIONS\n");
	for (size_t i = 0; (spec = option_at(verb, i)); i++) {
		if (spec->group) {
			buffer_text(buffer, ".SS ");
			roff_text(buffer, spec->group);
			buffer_text(buffer, "\n");
		}
		if (!spec->hidden)
			man_option(spec, buffer);
	}
}

/* The flags of another profiler whose users come to this verb. */
static void man_otel(const struct verb *verb, struct buffer *buffer)
{
	const struct option_spec *spec;
	bool is_first = true;

	for (size_t i = 0; (spec = option_at(verb, i)); i++) {
		if (!spec->otel_name)
			continue;
		if (is_first)
			buffer_text(buffer, ".SH FLAGS OF THE OPENTELEMETRY EBPF PROFILER\n"
					    "These are accepted, with two dashes; on the right is what they are here.\n");
		is_first = false;
		buffer_text(buffer, ".TP 28\n\\-");
		roff_text(buffer, spec->otel_name);
		buffer_text(buffer, "\n\\fB\\-\\-");
		roff_text(buffer, spec->name);
		buffer_text(buffer, "\\fR");
		if (spec->metavar)
			buffer_printf(buffer, " \\fI%s\\fR", spec->metavar);
		buffer_text(buffer, "\n");
	}
}

static void man_list(const struct verb *verb, struct buffer *buffer)
{
	const struct verb *other;
	const char *text;
	int code;

	if (verb->has_verbs) {
		buffer_text(buffer, ".SH VERBS\n");
		for (size_t i = 0; (other = verb_at(i)); i++)
			buffer_printf(buffer, ".TP\n.BR sonde\\-%s (1)\n%s.\n", other->name, other->summary);
	}
	if (verb->examples) {
		buffer_text(buffer, ".SH EXAMPLES\n");
		for (const struct verb_example *e = verb->examples; e->command; e++) {
			buffer_text(buffer, ".TP\n.B ");
			roff_text(buffer, e->command);
			buffer_text(buffer, "\n");
			roff_text(buffer, e->text);
			buffer_text(buffer, ".\n");
		}
	}
	buffer_text(buffer, ".SH EXIT STATUS\n");
	for (size_t i = 0; exit_code_at(i, &code, &text); i++) {
		buffer_printf(buffer, ".TP\n.B %d\n", code);
		roff_text(buffer, text);
		buffer_text(buffer, ".\n");
	}
	if (verb->takes_command)
		buffer_text(buffer, ".PP\nA command's own status other than 0 (128+N after signal N) is passed on when the report was "
				    "written; what went wrong then stands on standard error.\n");
	buffer_text(buffer, ".SH SEE ALSO\n.BR sonde (1)");
	for (size_t i = 0; (other = verb_at(i)); i++)
		buffer_printf(buffer, ",\n.BR sonde\\-%s (1)", other->name);
	buffer_text(buffer, verb->has_verbs ? ",\n.BR libsonde (3),\n.BR sonde_counters (3)\n" : "\n");
}

void verb_man(const struct verb *verb, struct buffer *buffer)
{
	struct buffer synopsis = BUFFER_INIT(1 << 12);

	option_synopsis(verb, &synopsis);
	buffer_printf(buffer, ".\\\" Made by `sonde --man`: do not edit.\n.TH SONDE%s%s 1 \"\" \"sonde %s\" \"User Commands\"\n",
		      verb->name ? "\\-" : "", verb->name ? verb->name : "", sonde_version());
	buffer_printf(buffer, ".SH NAME\nsonde%s%s \\- %s\n.SH SYNOPSIS\n.B sonde%s%s\n", verb->name ? "\\-" : "",
		      verb->name ? verb->name : "", verb->summary, verb->name ? " " : "", verb->name ? verb->name : "");
	roff_text(buffer, synopsis.data ? synopsis.data : "");
	buffer_text(buffer, "\n.SH DESCRIPTION\n");
	roff_paragraphs(buffer, verb->description);
	man_options(verb, buffer);
	man_otel(verb, buffer);
	man_list(verb, buffer);
	buffer_done(&synopsis);
}
