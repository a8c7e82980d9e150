// SPDX-License-Identifier: Apache-2.0
#include "flight/crash_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/plain_text.h"
#include "cli/output.h"
#include "cli/session_end.h"
#include "codec/json_read.h"
#include "flight/frozen_row.h"
#include "flight/session_thread.h"

#define WINDOW_NS  (2 * NS_PER_S) /* how late a crash is known */
#define TEXT_BYTES 4096

#define PROBE "tracepoint:signal:signal_deliver"
/* SIGILL 4, SIGABRT 6, SIGBUS 7, SIGFPE 8, SIGSEGV 11. A runtime's own handler, as Java's for null pointers, ends nothing. */
#define FILTER "sig >= 4 && sig <= 11 && sig != 5 && sig != 9 && sig != 10 && ka.sa.sa_handler == 0"

struct crash_watch {
	struct crash_watch_options options;
	struct session_thread thread;
	struct sonde_trace_options trace;
	struct sonde_session_options of_session;
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

	watch->options.warned(watch->options.arg, watch->thread.current.session);
}

static void note_start(void *arg)
{
	session_thread_started(&((struct crash_watch *)arg)->thread);
}

int crash_watch_start(const struct crash_watch_options *options, struct diag *diag, struct crash_watch **ret_watch)
{
	struct crash_watch *watch = calloc(1, sizeof(*watch));
	int err;

	if (!watch)
		return -ENOMEM;
	watch->options = *options;
	watch->trace = (struct sonde_trace_options){ .size = sizeof(watch->trace), .probes = PROBE, .filter = FILTER };
	watch->of_session = (struct sonde_session_options){ .size = sizeof(watch->of_session),
							    .command_line = options->command_line,
							    .mode = SONDE_TRACE_STACKS,
							    .trace = &watch->trace,
							    .timestamps = true,
							    .every_ns = WINDOW_NS,
							    .started = note_start,
							    .window = end_window,
							    .profile_format = "json",
							    .profile = take_window,
							    .process_labels = true,
							    .runtimes = options->runtimes,
							    .arg = watch };
	err = session_thread_start(&watch->thread, &watch->of_session, "crash", diag);
	if (err)
		free(watch);
	else
		*ret_watch = watch;
	return err;
}

void crash_watch_end(struct crash_watch *watch)
{
	if (!watch)
		return;
	session_thread_end(&watch->thread);
	free(watch);
}
