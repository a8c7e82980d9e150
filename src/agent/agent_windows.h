/* SPDX-License-Identifier: Apache-2.0 */
/* agent_windows: takes the windows of the agent's session and puts them into its store. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <sonde/sonde.h>

#include "store/store.h"

struct agent_windows {
	struct store *store;          /* borrowed; only agent_windows_take uses it while the session runs */
	const char *type;             /* of the profiles: "cpu" */
	uint64_t max_age_ns, max_bytes;
	uint64_t nr_stored, nr_lost;  /* lost: the store could not take them */
	int last_err;                 /* of the last window: a failure is told once until it ends */
};

/* For struct sonde_session_options.profile. Says on stderr when windows begin to be lost, and when they are stored again. 0 or a negative
 * errno. */
int agent_windows_take(struct agent_windows *windows, const struct sonde_window *window, const void *bytes, size_t size);
