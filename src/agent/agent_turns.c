// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_turns.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hold_signals.h"
#include "base/timed_wait.h"

struct agent_turns {
	struct agent_turns_options options;
	pthread_t thread;
	pthread_mutex_t lock;          /* for all below */
	pthread_cond_t has_changed;
	struct sonde_session *session; /* while it may be stopped */
	bool is_ending;
};

/* From here on, or until it is taken back, the session may be stopped. False: it is not to run any more. */
static bool show_session(struct agent_turns *turns, struct sonde_session *session)
{
	bool goes_on;

	pthread_mutex_lock(&turns->lock);
	turns->session = session;
	goes_on = !turns->is_ending;
	pthread_mutex_unlock(&turns->lock);
	return goes_on;
}

/* Waits so long. False: it is over. */
static bool pause_for(struct agent_turns *turns, uint64_t pause_ns)
{
	uint64_t until_ns = clock_ns() + pause_ns;
	bool goes_on;

	pthread_mutex_lock(&turns->lock);
	while (!turns->is_ending && clock_ns() < until_ns)
		timed_cond_wait(&turns->has_changed, &turns->lock, until_ns);
	goes_on = !turns->is_ending;
	pthread_mutex_unlock(&turns->lock);
	return goes_on;
}

static int take_turn(struct agent_turns *turns, enum agent_measure measure, uint32_t nr_windows)
{
	const struct agent_turns_options *options = &turns->options;
	struct sonde_session_options of_library = { .size = sizeof(of_library),
						    .mode = agent_measure_mode(measure),
						    .duration_ns = nr_windows * options->window_ns,
						    .every_ns = options->window_ns,
						    .arg = options->arg };
	struct sonde_session *session = NULL;
	int err;

	options->fill(options->arg, measure, &of_library);
	err = sonde_session_new(&of_library, &session);
	if (!err && show_session(turns, session))
		err = sonde_session_run(session);
	options->ended(options->arg, measure, session, err);
	show_session(turns, NULL);
	sonde_session_free(session);
	return err;
}

/* How many turns from the i-th on are of its kind. */
static uint32_t nr_alike(const struct agent_measures *measures, uint32_t i)
{
	uint32_t nr = 1;

	while (i + nr < measures->nr_turns && measures->turns[i + nr] == measures->turns[i])
		nr++;
	return nr;
}

static void *run(void *arg)
{
	struct agent_turns *turns = arg;
	const struct agent_measures *measures = turns->options.measures;
	bool goes_on = true;

	for (uint32_t i = 0, nr; goes_on; i = (i + nr) % measures->nr_turns) {
		bool is_mains = measures->turns[i] == measures->main;

		nr = nr_alike(measures, i);
		/* a turn that failed is a pause: the next one may fail as fast */
		if (is_mains || take_turn(turns, measures->turns[i], nr))
			goes_on = pause_for(turns, nr * turns->options.window_ns);
		else
			goes_on = pause_for(turns, 0);
	}
	return NULL;
}

int agent_turns_start(const struct agent_turns_options *options, struct diag *diag, struct agent_turns **ret_turns)
{
	HOLD_SIGNALS();
	struct agent_turns *turns = calloc(1, sizeof(*turns));
	int err;

	if (!turns)
		return -ENOMEM;
	turns->options = *options;
	pthread_mutex_init(&turns->lock, NULL);
	timed_cond_init(&turns->has_changed);
	err = pthread_create(&turns->thread, NULL, run, turns);
	if (err) {
		free(turns);
		return diag_errno(diag, err, "no thread for what has turns: %s", strerror(err));
	}
	*ret_turns = turns;
	return 0;
}

void agent_turns_end(struct agent_turns *turns)
{
	if (!turns)
		return;
	pthread_mutex_lock(&turns->lock);
	turns->is_ending = true;
	sonde_session_stop(turns->session);
	pthread_cond_signal(&turns->has_changed);
	pthread_mutex_unlock(&turns->lock);
	pthread_join(turns->thread, NULL);
	pthread_cond_destroy(&turns->has_changed);
	pthread_mutex_destroy(&turns->lock);
	free(turns);
}
