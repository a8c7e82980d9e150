// SPDX-License-Identifier: Apache-2.0
#include "flight/flight_page.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "codec/metrics_text.h"

#define MIB (1024.0 * 1024.0)

static const struct {
	const char *name, *type, *help;
	size_t offset; /* of the number in struct flight_numbers */
} of_recorder[] = {
#define X(name, type, help, field) { "sonde_recorder_" name, type, help, offsetof(struct flight_numbers, field) }
	X("windows", "gauge", "Windows that the flight recorder has in memory.", nr_windows),
	X("bytes", "gauge", "Bytes of them.", bytes),
	X("windows_dropped_total", "counter", "Windows that were dropped before their time, for lack of room.", nr_early),
	X("incidents_total", "counter", "Incidents: a trigger fired, and what was before and came after is stored.", nr_incidents),
	X("incidents_extended_total", "counter", "Triggers that fired in an incident and made it longer.", nr_extended),
	X("triggers_limited_total", "counter", "Triggers that fired and were limited: nothing is stored for them.", nr_limited),
	X("triggers_unread_total", "counter", "Seconds in which what a trigger reads could not be read.", nr_unread),
	X("windows_stored_total", "counter", "Windows of incidents that were stored.", nr_stored),
	X("windows_lost_total", "counter", "Windows of incidents that are lost: the store could not take them.", nr_lost),
#undef X
};

void flight_page_metrics(struct buffer *buffer, const struct flight_numbers *numbers)
{
	for (size_t i = 0; i < ARRAY_SIZE(of_recorder); i++) {
		uint64_t number;

		memcpy(&number, (const char *)numbers + of_recorder[i].offset, sizeof(number));
		metrics_number(buffer, of_recorder[i].name, of_recorder[i].type, of_recorder[i].help, number);
	}
}

void flight_page_text(struct buffer *buffer, const struct flight_numbers *numbers)
{
	buffer_printf(buffer,
		      "recorder: the last %.0f s in %" PRIu64 " windows, %.1f MiB, %" PRIu64 " dropped before their time; %" PRIu64
		      " incidents, %" PRIu64 " windows of them stored, %" PRIu64 " lost; %" PRIu64 " triggers limited, %" PRIu64
		      " times not read%s",
		      (double)numbers->duration_ns / (double)NS_PER_S, numbers->nr_windows, (double)numbers->bytes / MIB, numbers->nr_early,
		      numbers->nr_incidents, numbers->nr_stored, numbers->nr_lost, numbers->nr_limited, numbers->nr_unread,
		      numbers->in_incident ? "; now" : *numbers->last ? "; the last" : "");
	buffer_printf(buffer, "%s%s\n", *numbers->last ? ": " : "", numbers->last);
}

void flight_page_json(struct json *json, const struct flight_numbers *numbers)
{
	json_key(json, "recorder");
	json_open(json, '{');
	json_key_u64(json, "nr_windows", numbers->nr_windows);
	json_key_u64(json, "bytes", numbers->bytes);
	json_key_u64(json, "duration_ns", numbers->duration_ns);
	json_key_u64(json, "nr_dropped", numbers->nr_early);
	json_key_u64(json, "nr_incidents", numbers->nr_incidents);
	json_key_u64(json, "nr_extended", numbers->nr_extended);
	json_key_u64(json, "nr_limited", numbers->nr_limited);
	json_key_u64(json, "nr_unread", numbers->nr_unread);
	json_key_u64(json, "nr_stored", numbers->nr_stored);
	json_key_u64(json, "nr_lost", numbers->nr_lost);
	json_key(json, "in_incident");
	json_bool(json, numbers->in_incident);
	json_key_text(json, "last", numbers->last);
	json_close(json, '}');
}
