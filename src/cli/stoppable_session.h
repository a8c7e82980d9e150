/* SPDX-License-Identifier: Apache-2.0 */
/* stoppable_session: a session that one thread creates and runs, and that others may stop, also before there is one. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include <sonde/sonde.h>

#include "base/cleanup.h"

struct stoppable_session {
	pthread_mutex_t *lock;         /* the owner's, borrowed: for both below */
	struct sonde_session *session; /* while it may be stopped */
	bool is_stopped;               /* none is to run any more */
};

/* Gets a session that has ended, and its error; NULL: it could not be created. It is freed afterwards. */
typedef void (*session_ended_fn)(void *arg, struct sonde_session *session, int err);

/* Creates a session and runs it, unless it was stopped before. Returns its error. */
int stoppable_session_run(struct stoppable_session *stoppable, const struct sonde_session_options *options, session_ended_fn ended,
			  void *arg);
/* The caller holds the lock. A second call hurries the names of a session that ends. */
void stoppable_session_stop(struct stoppable_session *stoppable);
