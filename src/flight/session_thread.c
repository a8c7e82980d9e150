// SPDX-License-Identifier: Apache-2.0
#include "flight/session_thread.h"

#include <string.h>

#include "base/hold_signals.h"
#include "cli/output.h"

void session_thread_started(struct session_thread *thread)
{
	pthread_mutex_lock(&thread->lock);
	thread->is_started = true;
	pthread_cond_signal(&thread->has_changed);
	pthread_mutex_unlock(&thread->lock);
}

static void note_end(void *arg, struct sonde_session *session, int err)
{
	struct session_thread *thread = arg;
	const char *text = sonde_session_error(session);
	bool was_started;

	pthread_mutex_lock(&thread->lock);
	was_started = thread->is_started;
	thread->is_over = true;
	thread->err = err ? diag_errno(&thread->diag, -err, "trigger '%s': %.300s", thread->trigger, text) : 0;
	pthread_cond_signal(&thread->has_changed);
	pthread_mutex_unlock(&thread->lock);
	if (err && was_started)
		output_say("%s: it does not fire any more", thread->diag.text);
}

static void *run(void *arg)
{
	struct session_thread *thread = arg;

	stoppable_session_run(&thread->current, thread->options, note_end, thread);
	return NULL;
}

static int create(struct session_thread *thread)
{
	HOLD_SIGNALS();

	return pthread_create(&thread->thread, NULL, run, thread);
}

static void done(struct session_thread *thread)
{
	pthread_cond_destroy(&thread->has_changed);
	pthread_mutex_destroy(&thread->lock);
}

int session_thread_start(struct session_thread *thread, const struct sonde_session_options *options, const char *trigger, struct diag *diag)
{
	int err;

	*thread = (struct session_thread){ .options = options, .trigger = trigger, .current.lock = &thread->lock };
	pthread_mutex_init(&thread->lock, NULL);
	pthread_cond_init(&thread->has_changed, NULL);
	err = create(thread);
	if (err) {
		done(thread);
		return diag_errno(diag, err, "trigger '%s': no thread: %s", trigger, strerror(err));
	}
	pthread_mutex_lock(&thread->lock);
	while (!thread->is_started && !thread->is_over)
		pthread_cond_wait(&thread->has_changed, &thread->lock);
	err = thread->is_started ? 0 : thread->err;
	pthread_mutex_unlock(&thread->lock);
	if (!err)
		return 0;
	diag_errno(diag, -err, "%s", thread->diag.text);
	session_thread_end(thread);
	return err;
}

void session_thread_end(struct session_thread *thread)
{
	pthread_mutex_lock(&thread->lock);
	stoppable_session_stop(&thread->current);
	pthread_mutex_unlock(&thread->lock);
	pthread_join(thread->thread, NULL);
	done(thread);
}
