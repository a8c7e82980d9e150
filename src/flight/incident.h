/* SPDX-License-Identifier: Apache-2.0 */
/* incident: what is frozen: windows of the ring, before a trigger and after it, as rows of the store with what happened as notes of their
 * profiles. One thread. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "flight/ring.h"
#include "store/store.h"

#define INCIDENT_NOTE_BYTES 256
#define INCIDENT_MAX_NOTES  8

struct incident {
	bool is_on;
	uint64_t begin_ns, until_ns; /* clock_ns(): of the first trigger, and what begins before it belongs to the incident */
	uint64_t first_unix_ns, end_unix_ns; /* of what is stored */
	uint64_t nr_windows, nr_lost, nr_samples;
	char notes[INCIDENT_MAX_NOTES][INCIDENT_NOTE_BYTES]; /* a trigger each */
	uint32_t nr_notes;
};

void incident_begin(struct incident *incident, uint64_t now_ns, uint64_t until_ns);
/* A trigger with its words: the windows from now on have it as a note. Those beyond the room for them are not there. */
void incident_note(struct incident *incident, const char *trigger, const char *words);
/* Adds the window to the store, under the lock. A failure is said once. Counts. */
void incident_store(struct incident *incident, const struct ring_window *window, struct store *store, pthread_mutex_t *store_lock);
/* Says what is in the store, and how to see it. `early_ns`: what is missing behind it, because the agent ends. */
void incident_end(struct incident *incident, const char *store_name, uint64_t early_ns);
