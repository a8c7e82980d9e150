// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_windows.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/session_end.h"

static int store_window(struct agent_windows *windows, const struct sonde_window *window, const void *bytes, size_t size, struct diag *diag)
{
	uint64_t end_ns = window->start_unix_ns + window->duration_ns;
	struct store_row row = {
		.start_ns = window->start_unix_ns,
		.end_ns = end_ns,
		.type = (char *)(uintptr_t)windows->type,
		.body = (void *)(uintptr_t)bytes,
		.body_bytes = size,
	};
	int err;

	if (getrandom(row.profile_id, sizeof(row.profile_id), 0) != sizeof(row.profile_id))
		return diag_errno(diag, errno, "no random numbers: %s", strerror(errno));
	/* The bounds first: on a full disk they make room. */
	err = store_evict(windows->store, end_ns > windows->max_age_ns ? end_ns - windows->max_age_ns : 0, windows->max_bytes, diag);
	return err ? err : store_add(windows->store, &row, diag);
}

int agent_windows_take(struct agent_windows *windows, const struct sonde_window *window, const void *bytes, size_t size)
{
	struct diag diag = { 0 };
	int err = store_window(windows, window, bytes, size, &diag);

	if (err) {
		windows->nr_lost++;
		if (err != windows->last_err)
			output_say("window %" PRIu32 " is lost: %s", window->number, failure_text(&diag, err));
	} else {
		windows->nr_stored++;
		if (windows->last_err)
			output_say("windows are stored again; lost in all: %" PRIu64, windows->nr_lost);
	}
	windows->last_err = err;
	return err;
}
