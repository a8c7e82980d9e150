// SPDX-License-Identifier: Apache-2.0
#include "cli/stoppable_session.h"

/* From here on, or until it is taken back, the session may be stopped. False: it is not to run any more. */
static bool show(struct stoppable_session *stoppable, struct sonde_session *session)
{
	bool goes_on;

	pthread_mutex_lock(stoppable->lock);
	stoppable->session = session;
	goes_on = !stoppable->is_stopped;
	pthread_mutex_unlock(stoppable->lock);
	return goes_on;
}

int stoppable_session_run(struct stoppable_session *stoppable, const struct sonde_session_options *options, session_ended_fn ended,
			  void *arg)
{
	struct sonde_session *session = NULL;
	int err = sonde_session_new(options, &session);

	if (!err && show(stoppable, session))
		err = sonde_session_run(session);
	ended(arg, session, err);
	show(stoppable, NULL);
	sonde_session_free(session);
	return err;
}

void stoppable_session_stop(struct stoppable_session *stoppable)
{
	stoppable->is_stopped = true;
	sonde_session_stop(stoppable->session);
}
