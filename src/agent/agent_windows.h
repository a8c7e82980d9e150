/* SPDX-License-Identifier: Apache-2.0 */
/* agent_windows: takes the windows of one kind of the agent's sessions, puts them into its store, and counts. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "store/store.h"

#define AGENT_MAX_COUNTS 64

/* Since the agent began. */
struct window_numbers {
	uint64_t nr_stored, nr_lost;   /* lost: the store could not take them */
	uint64_t nr_unmade;            /* whose profile could not be made: lost, too */
	uint64_t nr_evicted;           /* rows of the store, also of earlier agents */
	uint64_t nr_unsent;            /* of these, that a destination had not received: once for each destination */
	uint64_t freq_hz;              /* at which the sessions sample now */
	uint64_t gap_ns;               /* between two sessions: nothing was sampled */
	uint64_t last_ns;              /* when the last window came, or the agent began: clock_ns() */
	uint32_t last_number;          /* 0: none came yet */
	uint64_t last_start_unix_ns, last_end_unix_ns, last_nr_samples;
	char trouble[256];             /* why the last window was not stored; "": it was */
	struct sonde_window_count counts[AGENT_MAX_COUNTS]; /* sums */
	uint32_t nr_counts;
};

struct agent_windows {
	struct store *store;           /* borrowed; only agent_windows_take uses it while sessions run */
	pthread_mutex_t *store_lock;   /* borrowed: of all kinds */
	const char *type;              /* of the profiles: "cpu" */
	uint64_t max_age_ns, max_bytes;
	bool in_memory;                /* the store keeps nothing that was delivered */
	uint64_t told_unsent;          /* say it again when there are so many */
	int last_err;                  /* of the last window: a failure is told once until it ends */
	pthread_mutex_t lock;          /* for the next two */
	uint64_t lost_bits;            /* bit N % 64: window N is counted as lost; those that have not ended yet are fewer */
	struct window_numbers numbers;
};

void agent_windows_init(struct agent_windows *windows); /* the rest is the caller's to fill in */
void agent_windows_done(struct agent_windows *windows);
/* For struct sonde_session_options.profile. Says on stderr when windows begin to be lost, and when they are stored again. 0 or a negative
 * errno. */
int agent_windows_take(struct agent_windows *windows, const struct sonde_window *window, const void *bytes, size_t size);
/* For struct sonde_session_options.window. */
void agent_windows_end(struct agent_windows *windows, const struct sonde_window *window);
/* A session failed before it had a window. */
void agent_windows_failed(struct agent_windows *windows);
/* The rate from now on. */
void agent_windows_set_freq(struct agent_windows *windows, uint64_t freq_hz);
/* Between the end of a session and the start of the next. */
void agent_windows_gap(struct agent_windows *windows, uint64_t gap_ns);
/* Any thread. */
void agent_windows_numbers(struct agent_windows *windows, struct window_numbers *ret_numbers);
