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
#include "cli/stoppable_session.h"

struct agent_turns {
	struct agent_turns_options options;
	pthread_t thread;
	pthread_mutex_t lock;          /* for all below */
	pthread_cond_t has_changed;
	struct stoppable_session current;
};

struct turn {
	struct agent_turns *turns;
	enum agent_measure measure;
};

/* Waits so long. False: it is over. */
static bool pause_for(struct agent_turns *turns, uint64_t pause_ns)
{
	uint64_t until_ns = clock_ns() + pause_ns;
	bool goes_on;

	pthread_mutex_lock(&turns->lock);
	while (!turns->current.is_stopped && clock_ns() < until_ns)
		timed_cond_wait(&turns->has_changed, &turns->lock, until_ns);
	goes_on = !turns->current.is_stopped;
	pthread_mutex_unlock(&turns->lock);
	return goes_on;
}

static void end_turn(void *arg, struct sonde_session *session, int err)
{
	const struct turn *turn = arg;

	turn->turns->options.ended(turn->turns->options.arg, turn->measure, session, err);
}

static int take_turn(struct agent_turns *turns, enum agent_measure measure, uint32_t nr_windows)
{
	struct turn turn = { turns, measure };
	const struct agent_turns_options *options = &turns->options;
	struct sonde_session_options of_library = { .size = sizeof(of_library),
						    .mode = agent_measure_mode(measure),
						    .duration_ns = nr_windows * options->window_ns,
						    .every_ns = options->window_ns,
						    .arg = options->arg };

	options->fill(options->arg, measure, &of_library);
	return stoppable_session_run(&turns->current, &of_library, end_turn, &turn);
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
	turns->current.lock = &turns->lock;
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
	stoppable_session_stop(&turns->current);
	pthread_cond_signal(&turns->has_changed);
	pthread_mutex_unlock(&turns->lock);
	pthread_join(turns->thread, NULL);
	pthread_cond_destroy(&turns->has_changed);
	pthread_mutex_destroy(&turns->lock);
	free(turns);
}
