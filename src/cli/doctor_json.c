// SPDX-License-Identifier: Apache-2.0
/* The report for programs: the same content, keys that stay. */
#include "cli/doctor.h"

#include <sonde/sonde.h>

/* Details quote the kernel: only their ASCII is passed on as it is. */
static void json_text(struct buffer *buffer, const char *text)
{
	buffer_text(buffer, "\"");
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == '"' || byte == '\\')
			buffer_printf(buffer, "\\%c", byte);
		else if (byte < ' ' || byte > '~')
			buffer_printf(buffer, "\\u%04x", byte);
		else
			buffer_append(buffer, text, 1);
	}
	buffer_text(buffer, "\"");
}

static void json_member(struct buffer *buffer, const char *before, const char *key, const char *text)
{
	buffer_printf(buffer, "%s\"%s\": ", before, key);
	json_text(buffer, text);
}

static void json_checks(const struct doctor *doctor, struct buffer *buffer)
{
	const struct doctor_check *check;

	for (size_t i = 0; (check = doctor_check_at(i)); i++) {
		json_member(buffer, i ? ",\n    { " : "\n    { ", "id", check->id);
		json_member(buffer, ", ", "group", check->group);
		json_member(buffer, ", ", "title", check->title);
		json_member(buffer, ", ", "state", doctor_state_name(doctor->findings[i].state));
		json_member(buffer, ", ", "detail", doctor->findings[i].detail);
		buffer_text(buffer, " }");
	}
}

static void json_opinion(const struct doctor_opinion *opinion, struct buffer *buffer)
{
	json_member(buffer, "{ ", "verb", opinion->verb);
	json_member(buffer, ", ", "verdict", doctor_verdict_name(opinion->verdict));
	buffer_text(buffer, ", \"missing\": [");
	for (uint32_t i = 0; i < opinion->nr_missing; i++) {
		json_member(buffer, i ? ",\n      { " : "\n      { ", "check", opinion->missing[i].check);
		json_member(buffer, ", ", "effect", opinion->missing[i].effect);
		json_member(buffer, ", ", "weight", opinion->missing[i].fatal ? "must" : opinion->missing[i].note ? "note" : "less");
		buffer_text(buffer, " }");
	}
	json_member(buffer, "],\n      ", "fix", opinion->fix);
	buffer_text(buffer, " }");
}

void doctor_json(const struct doctor *doctor, struct buffer *buffer)
{
	struct doctor_opinion opinion;

	json_member(buffer, "{\n  ", "sonde", sonde_version());
	buffer_text(buffer, ",\n  \"checks\": [");
	json_checks(doctor, buffer);
	buffer_text(buffer, "\n  ],\n  \"verbs\": [");
	for (size_t i = 0; doctor_opinion(doctor, i, &opinion); i++) {
		buffer_text(buffer, i ? ",\n    " : "\n    ");
		json_opinion(&opinion, buffer);
	}
	buffer_text(buffer, "\n  ]\n}\n");
}
