// SPDX-License-Identifier: Apache-2.0
/* windows: a recording's windows: how one ends and becomes a profile, while the next is recorded. docs/internals/windows.md */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/stop_fd.h"
#include "session/session.h"

#define WINDOW_BYTES ((size_t)64 << 20) /* a window of this size ends early */
#define WAIT_MS 50
#define NAMES_SHARE 8 /* of what unwind tables may take; 8 MiB by default */
#define ANNOUNCE_NS (2 * (uint64_t)ENGINE_STEP_NS) /* how long before a window's end the border is set: sums in the kernel need it */
#define LEAD_NS 20000000u /* and the least: longer than our thread is kept off its CPU between two instructions */

int session_close_window(struct sonde_session *session, uint64_t end_ns, struct window **ret_window)
{
	const struct process_table *processes = tracker_processes(session->engine.tracker);
	const struct location_files_parts parts = { .processes = processes,
						    .proxy = session->engine.proxy,
						    .debug_files = session->debug_files,
						    .jit_file_cache = session->jit_file_cache,
						    .runtimes = tracker_runtimes(session->engine.tracker),
						    .own_tgid = command_tgid(session->command) };
	CLEANUP(window_freep) struct window *window = calloc(1, sizeof(*window));
	struct closed_window closed;
	int err = window ? 0 : -ENOMEM;

	if (!err && session->measurement->type->close)
		err = session->measurement->type->close(session->measurement, processes, window);
	if (!err)
		err = engine_close_window(&session->engine, &closed);
	if (err)
		return err;
	window->number = ++session->nr_windows;
	window->start_ns = session->window_ns;
	window->end_ns = session->window_ns = end_ns;
	window->unix_offset_ns = clock_unix_offset_ns();
	window->store = closed.store;
	window->samples = closed.samples;
	window->has_process_labels = session->engine.identities != NULL;
	window->files = location_files_new(&parts, stack_table_locations(closed.store->stacks));
	if (!window->files)
		return -ENOMEM;
	session_account_window(session, window, &window->account);
	debug_files_end_window(session->debug_files);
	jit_file_cache_end_window(session->jit_file_cache);
	*ret_window = MOVE(window);
	return 0;
}

/* --- window after window -------------------------------------------------------------------------------------------------------------- */

/* For a window that was printed: keeps the notes made while it was resolved, for the report at the end. */
static void take_notes(struct sonde_session *session, struct named_window *named)
{
	const struct account *account = named->profile ? profile_account_of(named->profile) : &named->window->account,
			     *before = &named->window->account;

	account_add_notes(&session->account, account, before->nr_notes);
	session->account.nr_notes_refused += account->nr_notes_refused - before->nr_notes_refused;
	profile_free(named->profile);
}

static void take(struct sonde_session *session, struct named_window *named)
{
	const struct window *window = named->window;
	struct window_totals *totals = &session->totals;
	struct sonde_window info = { .size = sizeof(info),
				     .number = window->number,
				     .start_unix_ns = window->start_ns + window->unix_offset_ns,
				     .duration_ns = window->end_ns - window->start_ns,
				     .err = named->err };

	engine_forget_window(&session->engine, window->store);
	location_files_refuse(window->files, session->debug_files);
	totals->nr++;
	totals->nr_failed += named->err != 0;
	totals->nr_in_haste += named->nr_skipped != 0;
	if (named->err && !totals->err) {
		totals->err = named->err;
		session->totals_failure = named->diag;
	}
	if (session->measurement->prints_windows) {
		take_notes(session, named);
	} else if (named->profile) {
		account_counts_add(&totals->counts, &profile_account_of(named->profile)->counts);
		profile_free(session->profile);
		session->profile = named->profile;
		session->nr_reported_notes = 0;
		info.nr_samples = account_nr_recorded(profile_account_of(named->profile));
	}
	window_free(named->window);
	if (named->err == -EPIPE || (named->err && session->measurement->prints_windows)) /* -EPIPE: the reader of the reports has ended */
		stop_fd_set(session->stop_fd);
	if (session->options.window && !session->measurement->prints_windows)
		session->options.window(session->options.arg, &info);
}

static void take_named(struct sonde_session *session)
{
	struct named_window named;

	while (session->naming && naming_thread_take(session->naming, &named))
		take(session, &named);
}

static bool is_full(const struct sonde_session *session)
{
	const struct measurement *measurement = session->measurement;

	return stack_recorder_bytes(session->engine.recorder) +
		   (measurement->type->window_bytes ? measurement->type->window_bytes(measurement) : 0) >=
	       WINDOW_BYTES;
}

/* Ends the window at that time, or a little later. */
static void set_border(struct sonde_session *session, uint64_t border_ns)
{
	struct measurement *measurement = session->measurement;
	uint64_t lead_ns = LEAD_NS;

	session->border_ns = border_ns;
	while (measurement->type->set_border && !measurement->type->set_border(measurement, &session->border_ns)) {
		session->border_ns = clock_ns() + lead_ns;
		lead_ns *= 2;
	}
	stack_recorder_set_border(session->engine.recorder, session->border_ns);
}

static void change_rate(struct sonde_session *session)
{
	int err = session->next_freq_hz ? session->measurement->type->set_rate(session->measurement, session->next_freq_hz) : 0;

	if (err)
		account_note(&session->account, "the rate of sampling cannot be changed: %s", strerror(-err));
	session->next_freq_hz = 0;
}

static int change_memory(struct sonde_session *session)
{
	uint64_t bytes = session->next_unwind_bytes;

	if (!bytes)
		return 0;
	session->next_unwind_bytes = 0;
	naming_thread_bound(session->naming, bytes / NAMES_SHARE);
	return tracker_bound(session->engine.tracker, bytes);
}

static int end_window(struct sonde_session *session)
{
	uint64_t border_ns = session->border_ns;
	struct measurement *measurement = session->measurement;
	struct window *window;
	int err = measurement->type->cut ? measurement->type->cut(measurement, &session->diag) : 0;

	if (!err)
		err = stack_recorder_cut(session->engine.recorder, border_ns);
	if (!err)
		err = session_collect(session);
	if (!err)
		err = session_close_window(session, border_ns, &window);
	session->border_ns = 0;
	if (err)
		return err;
	change_rate(session);
	naming_thread_give(session->naming, window);
	return change_memory(session);
}

/* Is it time to set the window's border? */
static bool is_due(const struct sonde_session *session, uint64_t now_ns)
{
	const struct measurement *measurement = session->measurement;

	if (measurement->type->is_due)
		return measurement->type->is_due(measurement);
	return now_ns + ANNOUNCE_NS - session->window_ns >= session->options.every_ns || is_full(session);
}

int session_step_windows(struct sonde_session *session, uint64_t now_ns)
{
	uint64_t border_ns = session->window_ns + session->options.every_ns;
	bool is_at_once = session->measurement->type->is_due != NULL;

	take_named(session);
	if (session->border_ns)
		return now_ns < session->border_ns ? 0 : end_window(session);
	if (!session->naming || !is_due(session, now_ns))
		return 0;
	if (naming_thread_nr(session->naming) == NAMING_THREAD_MAX) { /* the window goes on until there is room */
		if (!is_at_once || is_full(session))
			naming_thread_hurry(session->naming);
		return 0;
	}
	set_border(session, border_ns > now_ns + LEAD_NS && !is_at_once && !is_full(session) ? border_ns : now_ns + LEAD_NS);
	return 0;
}

uint64_t session_next_border(const struct sonde_session *session)
{
	uint64_t border_ns = UINT64_MAX;

	if (session->border_ns)
		border_ns = session->border_ns;
	else if (session->naming && !session->measurement->type->is_due)
		border_ns = session->window_ns + session->options.every_ns - ANNOUNCE_NS;
	return border_ns < session->interval_ns ? border_ns : session->interval_ns;
}

/* Waits until the naming thread has at most `max` windows. */
static void wait_for_room(struct sonde_session *session, uint32_t max)
{
	struct pollfd done = { .fd = naming_thread_fd(session->naming), .events = POLLIN };

	while (take_named(session), naming_thread_nr(session->naming) > max) {
		if (clock_is_past(&session->haste_ns))
			naming_thread_hurry(session->naming);
		poll(&done, 1, WAIT_MS);
	}
}

int session_finish_windows(struct sonde_session *session, struct window *last)
{
	wait_for_room(session, NAMING_THREAD_MAX - 1);
	naming_thread_give(session->naming, last);
	wait_for_room(session, 0);
	if (!session->totals.nr_failed)
		return 0;
	session->diag = session->totals_failure;
	return session_fail(session, SONDE_EXIT_FAILED, session->totals.err);
}
