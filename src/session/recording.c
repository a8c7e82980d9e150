// SPDX-License-Identifier: Apache-2.0
/* recording: the parts of a session for measurements that take stacks: the engine, the search for debug files and JIT name files, and the
 * profile with names made at the end. A stack's path: sampler -> stack_recorder (the process table gives frames their locations) -> window
 * -> profile -> export. The order at the start ensures that no event is lost: open the side-band, load the triggers, read /proc, start
 * counting. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/stop_fd.h"
#include "collect/record.h"
#include "session/session.h"

#define MANY_RECORDS (16 * ENGINE_STEP_RECORDS)

/* --- the start ------------------------------------------------------------------------------------------------------------------------ */

static void open_debug_files(struct sonde_session *session)
{
	struct diag diag = { 0 };
	int err = debug_files_new(session->engine.parser, session->engine.proxy, &diag, &session->debug_files);

	if (err)
		account_note(session_account(session), "debuginfod is not asked: %s", diag.text[0] ? diag.text : strerror(-err));
}

static void fill_targets(struct sonde_session *session)
{
	const struct sonde_session_options *o = &session->options;

	if (session->measurement->watches_all)
		return;
	session->sampling.targets = o->nr_tgids ? o->tgids : o->tids;
	session->sampling.nr_targets = o->nr_tgids ? o->nr_tgids : o->nr_tids;
	session->sampling.config.command_tgid = command_tgid(session->command);
}

static int start_naming(struct sonde_session *session)
{
	const struct naming_thread_options options = { .measurement = session->measurement,
						       .outputs = session->measurement->prints_windows ? NULL : &session->outputs,
						       .vmlinux = session->vmlinux,
						       .addresses = session->options.addresses,
						       .as_linked = session->options.as_linked };
	bool has_windows = session->measurement->prints_windows || session->options.every_ns;

	return has_windows ? naming_thread_new(&options, &session->diag, &session->naming) : 0;
}

int session_load_engine(struct sonde_session *session)
{
	const struct sonde_session_options *o = &session->options;
	const struct engine_options options = { .sampling = &session->sampling,
						.account = &session->account,
						.unwind_bytes = o->unwind_bytes,
						.audit_every = o->audit_every,
						.no_cache = o->no_unwind_cache,
						.timestamps = o->timestamps,
						.label_names = o->process_labels ? &session->label_names : NULL,
						.initial_stacks = session->measurement->needs_initial_stacks,
						.renews_payloads = session->renews_payloads,
						.runtimes_off = session->runtimes_off };
	int err;

	fill_targets(session);
	err = engine_init(&session->engine, &options, &session->diag) ?: start_naming(session);
	session->sampling.targets = NULL; /* borrowed from the caller */
	if (err)
		return err;
	open_debug_files(session);
	session->jit_file_cache = jit_file_cache_new(session->engine.proxy, command_tgid(session->command));
	return session->jit_file_cache ? 0 : -ENOMEM;
}

static int restrict_tracker(struct sonde_session *session)
{
	CLEANUP(freep) uint32_t *tgids = calloc(session->targets.nr + 1, sizeof(*tgids));
	uint32_t nr = 0, tgid;

	if (!tgids)
		return -ENOMEM;
	if (session->command) {
		tgid = command_tgid(session->command);
		return tracker_only(session->engine.tracker, &tgid, 1, true);
	}
	for (uint32_t i = 0; i < session->targets.nr; i++)
		tgids[nr++] = session->targets.list[i].tgid;
	return nr ? tracker_only(session->engine.tracker, tgids, nr, false) : 0;
}

int session_scan(struct sonde_session *session)
{
	int err = session->measurement->watches_all ? 0 : restrict_tracker(session);

	if (err)
		return err;
	tracker_stops_by(session->engine.tracker, session->stop_fd);
	return tracker_scan(session->engine.tracker, &session->diag);
}

void session_want_lines(struct sonde_session *session)
{
	if (session->naming)
		naming_thread_want_lines(session->naming, session_wants_lines(session));
	debug_files_want_lines(session->debug_files, session_wants_lines(session));
}

/* --- while it runs -------------------------------------------------------------------------------------------------------------------- */

static int take_record(void *arg, const void *record)
{
	struct sonde_session *session = arg;
	const struct measurement_type *type = session->measurement->type;

	return record_is_stacks(record) || !type->record ? stack_recorder_record(session->engine.recorder, record)
							 : type->record(session->measurement, record);
}

static int collect(struct sonde_session *session, uint64_t max_records)
{
	return engine_read(&session->engine, max_records, take_record, session, &session->diag);
}

int session_collect(struct sonde_session *session)
{
	return collect(session, MANY_RECORDS);
}

int session_read(struct sonde_session *session)
{
	engine_follow_cpus(&session->engine);
	return collect(session, ENGINE_STEP_RECORDS);
}

static const struct location_table *open_locations(const struct sonde_session *session)
{
	return stack_table_locations(stack_recorder_store(session->engine.recorder)->stacks);
}

int session_step_engine(struct sonde_session *session, uint64_t now_ns)
{
	debug_files_step(session->debug_files, open_locations(session), tracker_processes(session->engine.tracker));
	jit_file_cache_step(session->jit_file_cache, open_locations(session), tracker_processes(session->engine.tracker), now_ns);
	return session_step_windows(session, now_ns) ?: engine_step(&session->engine, now_ns, &session->diag);
}

/* --- the end -------------------------------------------------------------------------------------------------------------------------- */

static bool is_stopped_again(void *arg)
{
	const struct sonde_session *session = arg;

	return stop_fd_is_set(session->stop_fd) || __atomic_load_n(&session->haste_ns, __ATOMIC_RELAXED);
}

/* The timeout is for all debug files together, from the end of the recording. */
static void wait_for_debug_files(struct sonde_session *session, uint64_t end_ns)
{
	int64_t timeout_ns = session->options.debuginfod_timeout_ns;

	debug_files_wait(session->debug_files, open_locations(session), tracker_processes(session->engine.tracker),
			 end_ns + (timeout_ns > 0 ? (uint64_t)timeout_ns : 0), is_stopped_again, session, &session->account);
}

/* Closes the last window, which without windows is the whole recording. */
static int close_last(struct sonde_session *session, uint64_t end_ns, struct window **ret_window)
{
	int err = stack_recorder_give_up(session->engine.recorder, tracker_processes(session->engine.tracker));

	if (!err)
		err = stack_recorder_cut(session->engine.recorder, UINT64_MAX);
	return err ? err : session_close_window(session, end_ns, ret_window);
}

/* Makes the profile of the observations. Uses the recording's own workers to read files. */
static int make_profile(struct sonde_session *session, struct window *window)
{
	CLEANUP(kernel_names_freep) struct kernel_names *kernel = kernel_names_new();
	const struct naming naming = { .parser = session->engine.parser,
				       .proxy = session->engine.proxy,
				       .lines = session_wants_lines(session),
				       .addresses = session->options.addresses,
				       .as_linked = session->options.as_linked,
				       .vmlinux = session->vmlinux,
				       .kernel = kernel,
				       .haste_ns = &session->haste_ns };
	uint32_t nr_skipped;
	int err = kernel ? measurement_profile(session->measurement, window, &naming, &session->profile, &nr_skipped) : -ENOMEM;

	if (!err && window->events_err)
		session_fail(session, SONDE_EXIT_FAILED, window->events_err);
	return err;
}

int session_name_last(struct sonde_session *session, uint64_t end_ns)
{
	struct window *window = NULL;
	int err = collect(session, UINT64_MAX); /* sampling has stopped: no new records */

	if (!err)
		err = auditor_finish(session->engine.auditor);
	if (err)
		return err;
	parser_cancel_by(session->engine.parser, &session->haste_ns);
	wait_for_debug_files(session, end_ns);
	err = close_last(session, end_ns, &window);
	if (err)
		return err;
	if (session->measurement->prints_windows)
		tracker_account(session->engine.tracker, &session->account);
	if (session->naming)
		return session_finish_windows(session, window);
	err = make_profile(session, window);
	engine_forget_window(&session->engine, window->store);
	window_free(window);
	return err;
}
