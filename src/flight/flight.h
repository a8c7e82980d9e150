/* SPDX-License-Identifier: Apache-2.0 */
/* flight: the agent's flight recorder: keeps the last windows in memory with the times of their samples, looks at the triggers once a
 * second, and when one fires has what was before and what comes after stored. All on a thread of its own: a store that is slow, or a
 * profile that is large, holds up no recording. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "flight/trigger.h"
#include "store/store.h"

struct flight_options { /* borrowed until flight_stop */
	const struct triggers *triggers;
	uint64_t before_ns, after_ns; /* a trigger; before_ns 0: nothing is recorded */
	uint64_t window_ns;           /* how long a window is */
	uint64_t max_bytes;           /* of the windows in memory */
	struct store *store;
	pthread_mutex_t *store_lock;
	const char *store_name;
	const char *command_line, *runtimes; /* of the session for crashes */
	void (*warned)(void *arg, struct sonde_session *session); /* that one may have warnings; from its thread */
	void *arg;
};

/* Since the agent began, but for the first three. */
struct flight_numbers {
	uint64_t nr_windows, bytes, duration_ns; /* in memory */
	uint64_t nr_early;    /* windows that were dropped for lack of room, before their time */
	uint64_t nr_incidents, nr_extended;
	uint64_t nr_limited;  /* triggers that did neither: too many incidents in an hour, or one that is too long */
	uint64_t nr_stored, nr_lost; /* windows of incidents */
	uint64_t nr_unread;   /* seconds in which a trigger could not be read */
	bool is_on, in_incident;
	char last[256];       /* trigger that fired, with its time; "": none */
};

struct flight;
struct flight *flight_new(void); /* NULL: no memory */
void flight_free(struct flight *flight); /* after flight_stop; takes NULL */
/* What was recorded stays from the time before, as far as the bounds let it. 0; -EOPNOTSUPP: the kernel does not have what a trigger
 * reads. */
MUST_CHECK int flight_start(struct flight *flight, const struct flight_options *options, struct diag *diag);
/* Samples are taken from now on: before, triggers are not looked at. Any thread. */
void flight_sampling(struct flight *flight);
/* All windows have come. `is_last`: an incident ends here; else it goes on with flight_start. */
void flight_stop(struct flight *flight, bool is_last);
/* For struct sonde_session_options.timed_profile: in JSON. 0 or a negative errno. */
int flight_take(struct flight *flight, const struct sonde_window *window, const void *bytes, size_t size);
void flight_numbers(struct flight *flight, struct flight_numbers *ret_numbers); /* any thread */
