// SPDX-License-Identifier: Apache-2.0
#include "flight/crash_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/hold_signals.h"
#include "base/plain_text.h"
#include "cli/output.h"
#include "cli/session_end.h"
#include "codec/json_read.h"
#include "flight/frozen_row.h"

#define WINDOW_NS  (2 * NS_PER_S) /* how late a crash is known */
#define TEXT_BYTES 4096

#define PROBE "tracepoint:signal:signal_deliver"
/* SIGILL 4, SIGABRT 6, SIGBUS 7, SIGFPE 8, SIGSEGV 11. A runtime's own handler, as Java's for null pointers, ends nothing. */
#define FILTER "sig >= 4 && sig <= 11 && sig != 5 && sig != 9 && sig != 10 && ka.sa.sa_handler == 0"

struct crash_watch {
	struct crash_watch_options options;
	pthread_t thread;
	pthread_mutex_t lock; /* for all below */
	pthread_cond_t has_changed;
	bool is_started, is_over, is_ending;
	struct sonde_session *session; /* while it may be stopped */
	int err;                       /* why it is over */
	struct diag diag;
};

/* --- crashes -------------------------------------------------------------------------------------------------------------------------- */

/* Whose the sample is that is read here. */
static void read_sample(struct json_reader *json, uint64_t *ret_tgid, struct buffer *ret_comm)
{
	CLEANUP(buffer_done) struct buffer key = BUFFER_INIT(TEXT_BYTES);

	if (!json_enter(json, '{'))
		return;
	while (json_next_key(json, &key)) {
		if (!strcmp(key.data, "pid"))
			*ret_tgid = json_read_u64(json);
		else if (!strcmp(key.data, "comm"))
			json_read_text(json, ret_comm);
		else
			json_skip(json);
	}
}

/* The first sample's process: "process 185 (web)", and how many samples there are more. */
static void find_words(const char *text, size_t size, char ret_words[CRASH_WORDS_BYTES])
{
	CLEANUP(buffer_done) struct buffer key = BUFFER_INIT(TEXT_BYTES), comm = BUFFER_INIT(TEXT_BYTES);
	struct json_reader json = json_reader_of(text, size);
	uint64_t tgid = 0, nr = 0;
	char more[32] = "";

	json_enter(&json, '{');
	while (json_next_key(&json, &key)) {
		if (strcmp(key.data, "samples") != 0) {
			json_skip(&json);
			continue;
		}
		json_enter(&json, '[');
		for (; json_next(&json); nr++) {
			if (nr)
				json_skip(&json);
			else
				read_sample(&json, &tgid, &comm);
		}
	}
	if (nr > 1)
		snprintf(more, sizeof(more), " and %" PRIu64 " more", nr - 1);
	if (comm.data)
		plain_make(comm.data);
	snprintf(ret_words, CRASH_WORDS_BYTES, "process %" PRIu64 " (%.32s)%s", tgid, comm.data ?: "", more);
}

static bool has_lost(const struct sonde_window *window)
{
	for (uint32_t i = 0; i < window->nr_counts; i++) {
		if (!strcmp(window->counts[i].group, "lost") && window->counts[i].nr)
			return true;
	}
	return false;
}

static int take_window(void *arg, const struct sonde_window *window, const void *bytes, size_t size)
{
	struct crash_watch *watch = arg;
	const struct frozen_row row = { .type = STORE_CRASH,
					.start_unix_ns = window->start_unix_ns,
					.duration_ns = window->duration_ns,
					.body = bytes,
					.body_bytes = size };
	char words[CRASH_WORDS_BYTES] = "a process whose stack is lost";
	struct diag diag = { 0 };
	int err;

	if (!window->nr_samples && !has_lost(window))
		return 0;
	err = frozen_row_add(&row, watch->options.store, watch->options.store_lock, &diag);
	if (err)
		output_say("the stack of a crash is lost: %s", failure_text(&diag, err));
	if (window->nr_samples)
		find_words(bytes, size, words);
	watch->options.crashed(watch->options.arg, words);
	return err;
}

/* --- the session ---------------------------------------------------------------------------------------------------------------------- */

static void end_window(void *arg, const struct sonde_window *window)
{
	struct crash_watch *watch = arg;

	watch->options.warned(watch->options.arg, watch->session);
}

/* From here on, or until it is taken back, the session may be stopped. False: it is not to run any more. */
static bool show_session(struct crash_watch *watch, struct sonde_session *session)
{
	bool goes_on;

	pthread_mutex_lock(&watch->lock);
	watch->session = session;
	goes_on = !watch->is_ending;
	pthread_mutex_unlock(&watch->lock);
	return goes_on;
}

static void note_start(void *arg)
{
	struct crash_watch *watch = arg;

	pthread_mutex_lock(&watch->lock);
	watch->is_started = true;
	pthread_cond_signal(&watch->has_changed);
	pthread_mutex_unlock(&watch->lock);
}

static void note_end(struct crash_watch *watch, int err, const char *text)
{
	bool was_started;

	pthread_mutex_lock(&watch->lock);
	was_started = watch->is_started;
	watch->is_over = true;
	watch->err = err ? diag_errno(&watch->diag, -err, "trigger 'crash': %.300s", text) : 0;
	pthread_cond_signal(&watch->has_changed);
	pthread_mutex_unlock(&watch->lock);
	if (err && was_started)
		output_say("crashes are not seen any more: %s", text);
}

static void *run(void *arg)
{
	struct crash_watch *watch = arg;
	const struct sonde_trace_options trace = { .size = sizeof(trace), .probes = PROBE, .filter = FILTER };
	const struct sonde_session_options options = { .size = sizeof(options),
						       .command_line = watch->options.command_line,
						       .mode = SONDE_TRACE_STACKS,
						       .trace = &trace,
						       .timestamps = true,
						       .every_ns = WINDOW_NS,
						       .started = note_start,
						       .window = end_window,
						       .profile_format = "json",
						       .profile = take_window,
						       .process_labels = true,
						       .runtimes = watch->options.runtimes,
						       .arg = watch };
	struct sonde_session *session = NULL;
	int err = sonde_session_new(&options, &session);

	if (!err && show_session(watch, session))
		err = sonde_session_run(session);
	show_session(watch, NULL);
	watch->options.warned(watch->options.arg, session);
	note_end(watch, err, sonde_session_error(session));
	sonde_session_free(session);
	return NULL;
}

static int start_thread(struct crash_watch *watch)
{
	HOLD_SIGNALS();

	return pthread_create(&watch->thread, NULL, run, watch);
}

static void watch_free(struct crash_watch *watch)
{
	pthread_cond_destroy(&watch->has_changed);
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}

int crash_watch_start(const struct crash_watch_options *options, struct diag *diag, struct crash_watch **ret_watch)
{
	struct crash_watch *watch = calloc(1, sizeof(*watch));
	int err;

	if (!watch)
		return -ENOMEM;
	watch->options = *options;
	pthread_mutex_init(&watch->lock, NULL);
	pthread_cond_init(&watch->has_changed, NULL);
	err = start_thread(watch);
	if (err) {
		watch_free(watch);
		return diag_errno(diag, err, "no thread to watch for crashes: %s", strerror(err));
	}
	pthread_mutex_lock(&watch->lock);
	while (!watch->is_started && !watch->is_over)
		pthread_cond_wait(&watch->has_changed, &watch->lock);
	err = watch->is_started ? 0 : watch->err;
	pthread_mutex_unlock(&watch->lock);
	if (!err) {
		*ret_watch = watch;
		return 0;
	}
	diag_errno(diag, -err, "%s", watch->diag.text);
	crash_watch_end(watch);
	return err;
}

void crash_watch_end(struct crash_watch *watch)
{
	if (!watch)
		return;
	pthread_mutex_lock(&watch->lock);
	watch->is_ending = true;
	sonde_session_stop(watch->session);
	pthread_mutex_unlock(&watch->lock);
	pthread_join(watch->thread, NULL);
	watch_free(watch);
}
