/* SPDX-License-Identifier: Apache-2.0 */
/* session_thread: a session that a trigger has beside the agent's own, on a thread of its own, from its start until it is ended. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include <sonde/sonde.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "cli/stoppable_session.h"

struct session_thread { /* in the caller's storage, which does not move */
	const struct sonde_session_options *options; /* borrowed until session_thread_end */
	const char *trigger;  /* for messages */
	pthread_t thread;
	pthread_mutex_t lock; /* for all below */
	pthread_cond_t has_changed;
	bool is_started, is_over;
	struct stoppable_session current;
	int err;                       /* why it is over */
	struct diag diag;
};

/* Returns when the session measures: its callback `started` has to call session_thread_started. 0; or an error with a line: there is
 * nothing to end then. A session that fails later says so. */
MUST_CHECK int session_thread_start(struct session_thread *thread, const struct sonde_session_options *options, const char *trigger,
				    struct diag *diag);
void session_thread_started(struct session_thread *thread);
void session_thread_end(struct session_thread *thread);
