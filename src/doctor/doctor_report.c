// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor.h"

#include <string.h>

#include "cli/option.h"

#define TITLE_WIDTH       34
#define MAX_MISSING_LINES 4

static const char *state_colour(enum doctor_state state)
{
	switch (state) {
	case DOCTOR_YES:
		return "\033[32m";
	case DOCTOR_NO:
		return "\033[31m";
	case DOCTOR_DENIED:
		return "\033[33m";
	case DOCTOR_INFO:
		break;
	}
	return "";
}

static void check_line(const struct doctor_check *check, const struct doctor_finding *finding, bool colour, struct buffer *buffer)
{
	bool info = finding->state == DOCTOR_INFO;
	const char *name = info ? "" : doctor_state_name(finding->state);
	size_t column = TITLE_WIDTH + 2 + (info ? 0 : 8);

	buffer_printf(buffer, "  %-*s", TITLE_WIDTH, check->title);
	if (!info)
		buffer_printf(buffer, "%s%s%s", colour ? state_colour(finding->state) : "", name, colour ? "\033[0m" : "");
	if (finding->detail[0]) {
		buffer_printf(buffer, "%*s", info ? 0 : 8 - (int)strlen(name), "");
		option_wrap(buffer, finding->detail, column, column);
	} else {
		buffer_text(buffer, "\n");
	}
}

static const char *verdict_text(enum doctor_verdict verdict)
{
	switch (verdict) {
	case DOCTOR_WORKS:
		return "works";
	case DOCTOR_LESS:
		return "works with less";
	case DOCTOR_NOT_PERMITTED:
		return "cannot: not permitted";
	case DOCTOR_KERNEL_CANNOT:
		break;
	}
	return "cannot: not in this kernel";
}

static const char *title_of(const char *id)
{
	const struct doctor_check *check;

	for (size_t i = 0; (check = doctor_check_at(i)); i++) {
		if (!strcmp(check->id, id))
			return check->title;
	}
	return id;
}

static void missing_line(const struct doctor_opinion *opinion, uint32_t i, struct buffer *buffer)
{
	struct buffer line = BUFFER_INIT(512);

	buffer_printf(&line, "without %s: %s", title_of(opinion->missing[i].check), opinion->missing[i].effect);
	buffer_printf(buffer, "%14s", "");
	option_wrap(buffer, line.data ? line.data : "", 14, 16);
	buffer_done(&line);
}

static void opinion_lines(const struct doctor_opinion *opinion, bool colour, struct buffer *buffer)
{
	const char *shade = opinion->verdict == DOCTOR_WORKS ? "\033[32m" : opinion->verdict == DOCTOR_LESS ? "\033[33m" : "\033[31m";
	uint32_t nr_lines = 0;

	buffer_printf(buffer, "  %-12s%s%s%s\n", opinion->verb, colour ? shade : "", verdict_text(opinion->verdict),
		      colour ? "\033[0m" : "");
	for (uint32_t i = 0; i < opinion->nr_missing; i++) {
		if (opinion->verdict > DOCTOR_LESS && !opinion->missing[i].fatal)
			continue; /* the verb cannot work: what it would lack besides is noise */
		if (++nr_lines <= MAX_MISSING_LINES)
			missing_line(opinion, i, buffer);
	}
	if (nr_lines > MAX_MISSING_LINES)
		buffer_printf(buffer, "%14sand %u more\n", "", nr_lines - MAX_MISSING_LINES);
	if (opinion->fix[0])
		buffer_printf(buffer, "%14sfix: %s\n", "", opinion->fix); /* not folded, so that it can be copied */
}

void doctor_report(const struct doctor *doctor, bool colour, struct buffer *buffer)
{
	const struct doctor_check *check;
	const char *group = "", *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
	struct doctor_opinion opinion;

	for (size_t i = 0; (check = doctor_check_at(i)); i++) {
		if (strcmp(check->group, group) != 0)
			buffer_printf(buffer, "%s%s%s%s\n", i ? "\n" : "", bold, check->group, plain);
		group = check->group;
		check_line(check, &doctor->findings[i], colour, buffer);
	}
	buffer_printf(buffer, "\n%sVerbs%s\n", bold, plain);
	for (size_t i = 0; doctor_opinion(doctor, i, &opinion); i++)
		opinion_lines(&opinion, colour, buffer);
}
