// SPDX-License-Identifier: Apache-2.0
#include "flight/incident.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/profile_bytes.h"
#include "cli/session_end.h"
#include "flight/frozen_row.h"
#include "store/packed_body.h"

#define TIME_BYTES 32

/* In UTC, as a store's path takes it. */
static void format_time(uint64_t unix_ns, char ret_text[TIME_BYTES])
{
	time_t seconds = (time_t)(unix_ns / NS_PER_S);
	struct tm parts;

	*ret_text = '\0';
	if (gmtime_r(&seconds, &parts))
		strftime(ret_text, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

void incident_begin(struct incident *incident, uint64_t now_ns, uint64_t until_ns)
{
	*incident = (struct incident){ .is_on = true, .begin_ns = now_ns, .until_ns = until_ns };
}

void incident_note(struct incident *incident, const char *trigger, const char *words)
{
	char time[TIME_BYTES];

	format_time(clock_of_ns(CLOCK_REALTIME), time);
	if (incident->nr_notes < INCIDENT_MAX_NOTES)
		snprintf(incident->notes[incident->nr_notes++], INCIDENT_NOTE_BYTES, "incident at %s: %.120s%s%.80s", time, trigger,
			 *words ? ": " : "", words);
}

/* The window's profile with the notes. */
static int write_profile(const struct incident *incident, const struct ring_window *window, struct diag *diag, struct buffer *body)
{
	const struct sonde_write_options options = { .size = sizeof(options), .format = "json" };
	CLEANUP(profile_freep) struct sonde_profile *profile = sonde_profile_new();
	CLEANUP(freep) void *bytes = NULL;
	size_t size = 0;
	int err = profile ? packed_body_open(window->packed, window->size, diag, &bytes, &size) : -ENOMEM;

	if (err)
		return err;
	err = sonde_profile_read_bytes(profile, "a window", bytes, size, NULL);
	for (uint32_t i = 0; !err && i < incident->nr_notes; i++)
		err = sonde_profile_note(profile, incident->notes[i]);
	if (!err)
		err = profile_bytes_write(profile, &options, body);
	return err ? diag_errno(diag, -err, "%s", sonde_profile_error(profile)) : 0;
}

static int add_row(const struct incident *incident, const struct ring_window *window, struct store *store, pthread_mutex_t *store_lock,
		   struct diag *diag)
{
	CLEANUP(buffer_done) struct buffer body = BUFFER_INIT(STORE_MAX_BODY_BYTES);
	struct frozen_row row = { .type = STORE_INCIDENT, .start_unix_ns = window->start_unix_ns, .duration_ns = window->duration_ns };
	int err = write_profile(incident, window, diag, &body);

	if (err)
		return err;
	row.body = body.data;
	row.body_bytes = body.size;
	return frozen_row_add(&row, store, store_lock, diag);
}

void incident_store(struct incident *incident, const struct ring_window *window, struct store *store, pthread_mutex_t *store_lock)
{
	uint64_t end_ns = window->start_unix_ns + window->duration_ns;
	struct diag diag = { 0 };
	int err = add_row(incident, window, store, store_lock, &diag);

	if (err) {
		if (!incident->nr_lost++)
			output_say("a window of the incident is lost: %s", failure_text(&diag, err));
		return;
	}
	if (!incident->nr_windows++)
		incident->first_unix_ns = window->start_unix_ns;
	incident->end_unix_ns = end_ns;
	incident->nr_samples += window->nr_samples;
}

void incident_end(struct incident *incident, const char *store_name, uint64_t early_ns)
{
	char from[TIME_BYTES], to[TIME_BYTES], early[64] = "";

	incident->is_on = false;
	format_time(incident->first_unix_ns, from);
	format_time(incident->end_unix_ns + NS_PER_S - 1, to);
	if (early_ns)
		snprintf(early, sizeof(early), " (the recording ended %.0f s before it)", (double)early_ns / (double)NS_PER_S);
	if (incident->nr_windows)
		output_say("the incident is stored%s: %" PRIu64 " windows, %" PRIu64 " samples; lost: %" PRIu64
			   " windows; sonde show %s@%s..%s," STORE_INCIDENT,
			   early, incident->nr_windows, incident->nr_samples, incident->nr_lost, store_name, from, to);
	else
		output_say("nothing of the incident is stored%s; lost: %" PRIu64 " windows", early, incident->nr_lost);
}
