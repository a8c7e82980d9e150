// SPDX-License-Identifier: Apache-2.0
/* The only place that knows all stages. A sample's way: sampler -> stack_book (frames placed by the process table) -> profile -> export. The
 * order at the start is what makes nothing fall between: side-band open, /proc read, sampling on. */
#include "session/session.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/priority.h"
#include "base/stop_fd.h"
#include "session/account_common.h"

#define PROGRESS_NS (NS_PER_S / 5) /* the progress is told no more often */
#define HASTE_NS NS_PER_S /* so long names are looked up after a second stop */
#define HURRY 10 /* so much lower is our nice value while we observe: ten times the weight of others */

extern const char profile_bpf_source[]; /* made by tools/amalgamate.py */

static bool is_missing_event(int err)
{
	return err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV || err == -EINVAL;
}

/* Opens the event, or cpu-clock in its place when this machine does not have it. */
static int open_events(struct sonde_session *session)
{
	struct diag diag = { 0 };
	char wanted[sizeof(session->event.name)];
	int err = sampler_open_events(session->engine.sampler, &session->sampling, &diag);

	if (!err)
		return 0;
	if (!is_missing_event(err) || !strcmp(session->event.name, "cpu-clock")) {
		session->diag = diag;
		return session_fail_setup(session, err);
	}
	if (session->options.no_fallback) {
		diag_errno(&session->diag, -err, "this machine does not have the event '%s' (%s)", session->event.name, strerror(-err));
		return session_fail(session, SONDE_EXIT_KERNEL_CANNOT, err);
	}
	memcpy(wanted, session->event.name, sizeof(wanted));
	err = event_parse("cpu-clock", &session->diag, &session->event);
	if (!err)
		err = sampler_open_events(session->engine.sampler, &session->sampling, &session->diag);
	if (err)
		return session_fail_setup(session, err);
	account_note(session_account(session), "this machine does not have the event '%s': sampling cpu-clock instead", wanted);
	return 0;
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

static void open_debug_files(struct sonde_session *session)
{
	struct diag diag = { 0 };
	int err = debug_files_new(session->engine.parser, session->engine.proxy, &diag, &session->debug_files);

	if (err)
		account_note(session_account(session), "debuginfod is not asked: %s", diag.text[0] ? diag.text : strerror(-err));
}

static int make_command(struct sonde_session *session, char *const *command)
{
	int err = command ? command_new(command, &session->diag, &session->command) : 0;

	return err ? session_fail(session, SONDE_EXIT_FAILED, err) : 0;
}

/* What every measurement needs, and who works beside it. */
static int load(struct sonde_session *session)
{
	const struct engine_options options = { .sampling = &session->sampling, .account = &session->account, .unwind_bytes = session->options.unwind_bytes,
						.audit_every = session->options.audit_every, .no_cache = session->options.no_unwind_cache, .timestamps = session->options.timestamps,
						.seeds = session_asks_for_waits(session), .renews_bodies = session->renews_bodies };
	int err = engine_init(&session->engine, &options, &session->diag);

	if (!err && session->options.every_ns)
		err = naming_thread_new(&(struct naming_thread_options){ .options = &session->options, .outputs = &session->outputs, .vmlinux = session->vmlinux }, &session->diag,
					&session->naming);
	if (err)
		return session_fail_setup(session, err);
	open_debug_files(session);
	session->jit_keeper = jit_keeper_new(session->engine.proxy, session->command ? command_tgid(session->command) : 0);
	return session->jit_keeper ? 0 : session_fail_setup(session, -ENOMEM);
}

/* What is measured. */
static int load_measurement(struct sonde_session *session)
{
	const struct engine *engine = &session->engine;
	int err = session->sampling.no_ticks ? 0 : open_events(session);

	if (err || !session_asks_for_waits(session))
		return err;
	err = waiting_new(&session->options, &(struct waiting_parts){ engine->sampler, engine->book, engine->seeds }, &session->diag, &session->waiting);
	return err ? session_fail_setup(session, err) : 0;
}

/* Loads the kernel side, then reads what runs. */
static int set_up(struct sonde_session *session, const struct sonde_profile_options *options)
{
	int err = make_command(session, options->command);

	if (err)
		return err;
	session->sampling.targets = options->nr_tgids ? options->tgids : options->tids;
	session->sampling.nr_targets = options->nr_tgids ? options->nr_tgids : options->nr_tids;
	if (session->command)
		session->sampling.config.command_tgid = command_tgid(session->command);
	err = load(session) ?: load_measurement(session);
	session->sampling.targets = NULL; /* the caller's */
	if (err)
		return err;
	err = restrict_tracker(session);
	if (!err) {
		tracker_stops_by(session->engine.tracker, session->stop_fd);
		err = tracker_scan(session->engine.tracker, &session->diag);
	}
	return err ? session_fail_setup(session, err) : 0;
}

static int make_descriptors(struct sonde_session *session)
{
	struct epoll_event interest = { .events = EPOLLIN };

	session->stop_fd = stop_fd_new();
	session->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (session->stop_fd < 0 || session->epoll_fd < 0 || epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, session->stop_fd, &interest))
		return diag_errno(&session->diag, errno, "no more descriptors: %s", strerror(errno));
	return 0;
}

int sonde_session_new(const struct sonde_profile_options *options, struct sonde_session **ret_session)
{
	struct sonde_session *session = calloc(1, sizeof(*session));
	int err;

	*ret_session = session;
	if (!session)
		return -ENOMEM;
	session->stop_fd = session->epoll_fd = -1;
	session->new_ns = clock_ns();
	session_begin_cost(session);
	session->account_text = BUFFER_INIT(1 << 20);
	err = session_take_options(session, options);
	if (err)
		return session_fail(session, SONDE_EXIT_USAGE, err);
	options = &session->options; /* the caller's may be smaller */
	account_begin(&session->account, options->command_line);
	session->vmlinux = options->vmlinux ? strdup(options->vmlinux) : NULL;
	if (options->vmlinux && !session->vmlinux)
		return session_fail_setup(session, -ENOMEM);
	err = make_descriptors(session);
	if (err)
		return session_fail_setup(session, err);
	err = set_up(session, options);
	session->is_ready = !err;
	session_end_cost(session);
	return err;
}

void sonde_session_free(struct sonde_session *session)
{
	if (!session)
		return;
	naming_thread_free(session->naming);
	waiting_free(session->waiting);
	debug_files_free(session->debug_files);
	jit_keeper_free(session->jit_keeper);
	engine_done(&session->engine);
	profile_free(session->profile);
	command_free(session->command);
	targets_done(&session->targets);
	outputs_done(&session->outputs);
	free(session->vmlinux);
	buffer_done(&session->account_text);
	closep(&session->stop_fd);
	closep(&session->epoll_fd);
	free(session);
}

const char *sonde_session_error(const struct sonde_session *session)
{
	return session ? session->diag.text : strerror(ENOMEM);
}

int sonde_session_exit_code(const struct sonde_session *session)
{
	return session ? session->exit_code : SONDE_EXIT_FAILED;
}

void sonde_session_stop(struct sonde_session *session)
{
	uint64_t never = 0;

	if (!session)
		return;
	if (__atomic_fetch_add(&session->nr_stops, 1, __ATOMIC_RELAXED))
		__atomic_compare_exchange_n(&session->haste_ns, &never, clock_ns() + HASTE_NS, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	stop_fd_tell(session->stop_fd);
}

static int take_record(void *arg, const void *record)
{
	struct sonde_session *session = arg;

	return waiting_is_for(*(const uint32_t *)record) ? waiting_record(session->waiting, record) : stack_book_record(session->engine.book, record);
}

static int collect(struct sonde_session *session, uint64_t max_records)
{
	return engine_read(&session->engine, max_records, take_record, session, &session->diag);
}

#define MANY_RECORDS (16 * ENGINE_STEP_RECORDS)

int session_collect(struct sonde_session *session)
{
	return collect(session, MANY_RECORDS);
}

static int wait_on(struct sonde_session *session, int fd)
{
	struct epoll_event interest = { .events = EPOLLIN };

	if (epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, fd, &interest))
		return diag_errno(&session->diag, errno, "cannot wait for the kernel: %s", strerror(errno));
	return 0;
}

/* Looks at what costs a look into /proc once per ENGINE_STEP_NS only. */
static bool is_over(struct sonde_session *session, uint64_t end_ns)
{
	uint64_t now = clock_ns();
	int status;

	if (stop_fd_take(session->stop_fd) || now >= end_ns)
		return true;
	if (now - session->looked_ns < ENGINE_STEP_NS)
		return false;
	session->looked_ns = now;
	return targets_ended(&session->targets) || (session->command && command_ended(session->command, &status));
}

static uint64_t nr_observed(const struct sonde_session *session)
{
	return (session->waiting ? waiting_nr_waits(session->waiting) : 0) + (session->sampling.no_ticks ? 0 : stack_book_nr_samples(session->engine.book));
}

static void tell_progress(struct sonde_session *session, uint64_t now)
{
	if (!session->options.progress || now - session->shown_ns < PROGRESS_NS)
		return;
	session->shown_ns = now;
	session->options.progress(session->options.progress_arg, now - session->start_ns, nr_observed(session));
}

/* Until something has come, or for so long; what is audited goes on meanwhile. */
static int await(struct sonde_session *session, int max_ms)
{
	uint64_t end_ns = clock_ns() + (uint64_t)max_ms * NS_PER_MS;
	int64_t left_ms = max_ms;
	bool is_busy;
	int nr;

	do {
		struct epoll_event events[8];
		int err = auditor_step(session->engine.auditor, &is_busy);

		if (err)
			return err;
		nr = epoll_wait(session->epoll_fd, events, ARRAY_SIZE(events), is_busy && left_ms ? 1 : (int)left_ms);
		if (nr < 0 && errno != EINTR)
			return diag_errno(&session->diag, errno, "cannot wait for the kernel: %s", strerror(errno));
		left_ms = (int64_t)(end_ns - clock_ns()) / (int64_t)NS_PER_MS;
	} while (!nr && is_busy && left_ms > 0);
	return 0;
}

static const struct place_table *open_places(const struct sonde_session *session)
{
	return stack_table_places(stack_book_store(session->engine.book)->stacks);
}

static int sample(struct sonde_session *session)
{
	uint64_t end_ns = UINT64_MAX;
	int err = 0;

	if (session->options.duration_ns && session->options.duration_ns < UINT64_MAX - session->start_ns)
		end_ns = session->start_ns + session->options.duration_ns;

	while (!err && !is_over(session, end_ns)) {
		uint64_t now = clock_ns(), border_ns = session_next_border(session), until_ns = border_ns < end_ns ? border_ns : end_ns, left_ns = until_ns > now ? until_ns - now : 0;

		err = await(session, tracker_has_more(session->engine.tracker) ? 0 : (int)((left_ns < ENGINE_STEP_NS ? left_ns : ENGINE_STEP_NS) / NS_PER_MS) + 1);
		if (err)
			return err;
		engine_follow_cpus(&session->engine);
		err = collect(session, ENGINE_STEP_RECORDS);
		if (!err && session->waiting)
			err = waiting_step(session->waiting, now);
		debug_files_step(session->debug_files, open_places(session), tracker_processes(session->engine.tracker));
		jit_keeper_step(session->jit_keeper, open_places(session), now);
		tell_progress(session, now);
		if (!err)
			err = session_step_windows(session, now);
		if (!err)
			err = engine_step(&session->engine, now, &session->diag);
	}
	return err;
}

static bool is_stopped_again(void *arg)
{
	const struct sonde_session *session = arg;

	return stop_fd_told(session->stop_fd);
}

/* For all debug files together, from the end of sampling. */
static void wait_for_debug_files(struct sonde_session *session, uint64_t end_ns)
{
	int64_t timeout_ns = session->options.debuginfod_timeout_ns;

	debug_files_wait(session->debug_files, open_places(session), tracker_processes(session->engine.tracker), end_ns + (timeout_ns > 0 ? (uint64_t)timeout_ns : 0),
			 is_stopped_again, session, &session->account);
}

/* From now on it counts. */
static int start(struct sonde_session *session)
{
	uint64_t start_ns;
	int err = sampler_start(session->engine.sampler, &session->diag);

	session->start_ns = clock_ns();
	if (!err && session->waiting)
		err = waiting_start(session->waiting, session->account.command_line, &session->diag, &start_ns);
	if (!err && session->waiting)
		session->start_ns = start_ns;
	session->window_ns = session->start_ns;
	session->account.startup_ns = session->start_ns - session->new_ns;
	return err;
}

/* *ret_end_ns: nothing that was after it counts. */
static int stop(struct sonde_session *session, uint64_t *ret_end_ns)
{
	int err = 0;

	if (session->waiting)
		err = waiting_stop(session->waiting, &session->diag, ret_end_ns);
	sampler_stop(session->engine.sampler);
	if (err || !session->waiting)
		*ret_end_ns = clock_ns();
	return err;
}

/* All that was recorded, or the last window of it. */
static int close_last(struct sonde_session *session, uint64_t end_ns, struct window **ret_window)
{
	const struct process_table *processes = tracker_processes(session->engine.tracker);
	int err = stack_book_give_up(session->engine.book, processes);

	if (!err)
		err = stack_book_cut(session->engine.book, UINT64_MAX);
	if (!err)
		err = session_close_window(session, end_ns, ret_window);
	if (err || !session->waiting)
		return err;
	(*ret_window)->events = waiting_events(session->waiting);
	(*ret_window)->events_lost = waiting_events_lost(session->waiting);
	return 0;
}

/* The observations as a profile, by the readers of files that the recording had. */
static int make_profile(struct sonde_session *session, struct window *window)
{
	CLEANUP(kernel_names_freep) struct kernel_names *kernel = kernel_names_new();
	const struct naming naming = { .parser = session->engine.parser, .proxy = session->engine.proxy, .lines = session_wants_lines(session), .vmlinux = session->vmlinux, .kernel = kernel, .haste_ns = &session->haste_ns };
	uint32_t nr_skipped;
	int err = kernel ? window_profile(window, &session->options, &naming, &session->profile, &nr_skipped) : -ENOMEM;

	if (!err && window->events_err)
		session_fail(session, SONDE_EXIT_FAILED, window->events_err);
	return err;
}

static int name_last(struct sonde_session *session, uint64_t end_ns)
{
	struct window *window = NULL;
	int err = close_last(session, end_ns, &window);

	if (err || session->naming)
		return err ? err : session_finish_windows(session, window);
	err = make_profile(session, window);
	engine_forget_window(&session->engine, window->store);
	window_free(window);
	return err;
}

/* While it lasts: what new processes have mapped is to be known before they are gone, and thousands of switches a second want the CPU as well. */
static void set_nice(struct sonde_session *session, int nice)
{
	if (nice == session->nice)
		return;
	session->nice = nice;
	priority_set(0, nice);
	engine_set_nice(&session->engine, nice);
}

static int run(struct sonde_session *session)
{
	uint64_t end_ns;
	int err = wait_on(session, tracker_fd(session->engine.tracker)), stop_err;

	if (!err)
		err = wait_on(session, sampler_wake_fd(session->engine.sampler));
	if (!err && session->naming) {
		naming_thread_want_lines(session->naming, session_wants_lines(session));
		err = wait_on(session, naming_thread_fd(session->naming));
	}
	debug_files_want_lines(session->debug_files, session_wants_lines(session));
	set_nice(session, session->nice_before - HURRY);
	if (!err)
		err = start(session);
	if (!err && session->command) {
		err = command_release(session->command, &session->diag);
		if (err)
			return session_fail(session, (enum sonde_exit)command_failure_code(err), err);
	}
	if (!err)
		err = sample(session);
	stop_err = stop(session, &end_ns);
	err = err ? err : stop_err;
	if (session->command)
		command_stop(session->command);
	set_nice(session, session->nice_before);
	if (!err)
		err = collect(session, UINT64_MAX); /* nothing is added any more */
	if (!err)
		err = auditor_finish(session->engine.auditor);
	parser_cancel_by(session->engine.parser, &session->haste_ns);
	if (!err)
		wait_for_debug_files(session, end_ns);
	if (!err)
		err = name_last(session, end_ns);
	return err ? session_fail_setup(session, err) : 0;
}

int sonde_session_run(struct sonde_session *session)
{
	int err;

	if (!session)
		return -EINVAL;
	if (!session->is_ready)
		return session_fail(session, SONDE_EXIT_USAGE, diag_errno(&session->diag, EINVAL, "a session runs once, and only when it could be made"));
	session->is_ready = false;
	session_begin_cost(session);
	session->nice_before = session->nice = priority_nice();
	err = run(session);
	set_nice(session, session->nice_before);
	session_end_cost(session);
	if (err)
		return err;
	if (!session->naming)
		session_account_cost(session);
	if (!nr_observed(session))
		session_fail(session, SONDE_EXIT_NO_SAMPLES, 0);
	return 0;
}

bool sonde_session_command_status(const struct sonde_session *session, int *ret_status)
{
	return session && session->command && command_ended(session->command, ret_status);
}

const char *sonde_session_warning(struct sonde_session *session)
{
	const struct account *account = session ? session_account(session) : NULL;

	return account && session->nr_told_notes < account->nr_notes ? account->notes[session->nr_told_notes++] : NULL;
}

const char *sonde_profile_source(const struct sonde_profile_options *options)
{
	return profile_bpf_source;
}

const char *sonde_version(void)
{
	return SONDE_VERSION;
}
