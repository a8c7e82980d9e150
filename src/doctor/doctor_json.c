// SPDX-License-Identifier: Apache-2.0
/* The report for programs: the same content, with stable keys. */
#include "doctor/doctor.h"

#include <sonde/sonde.h>

#include "codec/json.h"

#define VERSION 1

static void json_checks(const struct doctor *doctor, struct json *json)
{
	const struct doctor_check *check;

	json_key(json, "checks");
	json_open(json, '[');
	for (size_t i = 0; (check = doctor_check_at(i)); i++) {
		json_line(json);
		json_open(json, '{');
		json_key_text(json, "id", check->id);
		json_key_text(json, "group", check->group);
		json_key_text(json, "title", check->title);
		json_key_text(json, "state", doctor_state_name(doctor->findings[i].state));
		json_key_text(json, "detail", doctor->findings[i].detail);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void json_opinion(const struct doctor_opinion *opinion, struct json *json)
{
	json_line(json);
	json_open(json, '{');
	json_key_text(json, "verb", opinion->verb);
	json_key_text(json, "verdict", doctor_verdict_name(opinion->verdict));
	json_key_text(json, "fix", opinion->fix);
	json_key(json, "missing");
	json_open(json, '[');
	for (uint32_t i = 0; i < opinion->nr_missing; i++) {
		json_line(json);
		json_open(json, '{');
		json_key_text(json, "check", opinion->missing[i].check);
		json_key_text(json, "effect", opinion->missing[i].effect);
		json_key_text(json, "weight", opinion->missing[i].fatal ? "must" : opinion->missing[i].note ? "note" : "less");
		json_close(json, '}');
	}
	json_close(json, ']');
	json_close(json, '}');
}

void doctor_json(const struct doctor *doctor, struct buffer *buffer)
{
	struct json json = { .buffer = buffer };
	struct doctor_opinion opinion;

	json_open(&json, '{');
	json_key_text(&json, "format", "sonde-doctor");
	json_key_u64(&json, "version", VERSION);
	json_key_text(&json, "sonde", sonde_version());
	json_checks(doctor, &json);
	json_key(&json, "verbs");
	json_open(&json, '[');
	for (size_t i = 0; doctor_opinion(doctor, i, &opinion); i++)
		json_opinion(&opinion, &json);
	json_close(&json, ']');
	json_close(&json, '}');
	buffer_text(buffer, "\n");
}
