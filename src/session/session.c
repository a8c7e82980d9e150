// SPDX-License-Identifier: Apache-2.0
/* session: a session's life, the same for all measurements: creation, start, the loop, stop. The parts for measurements that take stacks
 * are in recording.c. */
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>

#include "base/clock.h"
#include "base/priority.h"
#include "base/readable.h"
#include "base/stop_fd.h"
#include "session/counting.h"

#define PROGRESS_NS (NS_PER_S / 5) /* least time between two progress reports */
#define HASTE_NS NS_PER_S /* names are looked up this long after a second stop */
#define COMMAND_END_MS 1000 /* how long a command may take to end by itself */
#define MAX_REST_NS (5 * NS_PER_MS)
#define AT_ONCE 20 /* steps without a rest, after a quiet time */
#define HURRY 10 /* our nice value is lower by this while we observe: ten times the weight of others */

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* linux/pidfd.h, as of Linux 6.9 */
#endif

extern const char profile_bpf_source[]; /* made by tools/amalgamate.py */

static int make_command(struct sonde_session *session, char *const *command)
{
	int err = command ? command_new(command, &session->diag, &session->command) : 0;

	return err ? session_fail(session, SONDE_EXIT_FAILED, err) : 0;
}

/* Loads the engine, if stacks are needed, then its triggers, then reads the running processes. */
static int set_up(struct sonde_session *session)
{
	struct measurement *measurement = session->measurement;
	int err = make_command(session, session->options.command);

	if (err)
		return err;
	err = measurement->needs_engine ? session_load_engine(session) : 0;
	if (!err)
		err = measurement->type->load(measurement, &session->targets, command_tgid(session->command), &session->diag);
	if (!err && measurement->needs_engine)
		err = session_scan(session);
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

/* How long the loop may rest between two steps: while a process is not known, its samples are dear, and only so many may come. 0: never. */
static uint64_t rest_of(const struct sonde_session_options *options)
{
	const struct sonde_sampling_options *sampling = options->sampling;
	uint64_t freq_hz = sampling && sampling->freq_hz ? sampling->freq_hz : SONDE_DEFAULT_FREQ_HZ, half_ns = NS_PER_S / freq_hz / 2;

	if (options->mode != SONDE_ON_CPU || (sampling && sampling->period))
		return 0;
	return half_ns < MAX_REST_NS ? half_ns : MAX_REST_NS;
}

/* Forgets what was borrowed from the caller. */
static void forget_borrowed(struct sonde_session_options *options)
{
	options->sampling = NULL;
	options->waits = NULL;
	options->runq = NULL;
	options->leak = NULL;
	options->counters = NULL;
	options->files = NULL;
	options->io = NULL;
	options->trace = NULL;
	options->tgids = options->tids = NULL;
	options->comm = options->cgroup = options->vmlinux = options->command_line = NULL;
	options->command = NULL;
	options->environment = NULL;
	options->runtimes = NULL;
}

int sonde_session_new(const struct sonde_session_options *options, struct sonde_session **ret_session)
{
	struct sonde_session *session = calloc(1, sizeof(*session));
	int err;

	*ret_session = session;
	if (!session)
		return -ENOMEM;
	session->stop_fd = session->epoll_fd = session->watched_fd = -1;
	session->new_ns = clock_ns();
	session_begin_cost(session);
	session->account_text = BUFFER_INIT(1 << 20);
	err = session_take_options(session, options);
	if (err)
		return session_fail(session, SONDE_EXIT_USAGE, err);
	err = make_descriptors(session);
	if (err)
		return session_fail_setup(session, err);
	err = set_up(session);
	session->rest_ns = rest_of(&session->options);
	forget_borrowed(&session->options);
	session->is_ready = !err;
	session_end_cost(session);
	return err;
}

void sonde_session_free(struct sonde_session *session)
{
	if (!session)
		return;
	naming_thread_free(session->naming);
	measurement_free(session->measurement);
	debug_files_free(session->debug_files);
	jit_file_cache_free(session->jit_file_cache);
	engine_done(&session->engine);
	profile_free(session->profile);
	command_free(session->command);
	targets_done(&session->targets);
	outputs_done(&session->outputs);
	free(session->vmlinux);
	buffer_done(&session->account_text);
	closep(&session->stop_fd);
	closep(&session->epoll_fd);
	closep(&session->watched_fd);
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
	stop_fd_set(session->stop_fd);
}

int sonde_session_set_rate(struct sonde_session *session, uint64_t freq_hz)
{
	if (!session || !session->measurement || !session->measurement->type->set_rate || !session->naming || !freq_hz)
		return -EINVAL;
	session->next_freq_hz = freq_hz;
	return 0;
}

int sonde_session_set_memory(struct sonde_session *session, uint64_t unwind_bytes)
{
	if (!session || !session->naming || unwind_bytes < SONDE_CHUNK_BYTES || unwind_bytes > session->options.unwind_bytes)
		return -EINVAL;
	session->next_unwind_bytes = unwind_bytes;
	return 0;
}

static int wait_on(struct sonde_session *session, int fd)
{
	struct epoll_event interest = { .events = EPOLLIN };

	if (epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, fd, &interest))
		return diag_errno(&session->diag, errno, "cannot wait for the kernel: %s", strerror(errno));
	return 0;
}

static void watch(struct sonde_session *session, uint32_t id, unsigned int flags)
{
	struct epoll_event interest = { .events = EPOLLIN | EPOLLONESHOT }; /* once: a process's threads may live on */

	if (session->watched == id)
		return;
	closep(&session->watched_fd);
	session->watched = id;
	session->watched_fd = pidfd_open((pid_t)id, flags);
	if (session->watched_fd >= 0 && epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, session->watched_fd, &interest))
		return; /* have_ended checks it from time to time anyway */
}

static bool have_ended(struct sonde_session *session)
{
	const struct target *living;
	int status;

	if (session->command) {
		watch(session, command_tgid(session->command), 0);
		return command_ended(session->command, &status);
	}
	living = targets_living(&session->targets);
	if (living)
		watch(session, living->tid ? living->tid : living->tgid, living->tid ? PIDFD_THREAD : 0);
	return !living && session->targets.nr;
}

/* Must the measurement stop? Checking the targets reads /proc, so it is done only every ENGINE_STEP_NS, or at once when the watched
 * process or thread ends. */
static bool is_over(struct sonde_session *session)
{
	uint64_t now = clock_ns();

	if (stop_fd_take(session->stop_fd) || now >= session->end_ns)
		return true;
	if (now - session->looked_ns < ENGINE_STEP_NS && !fd_is_readable(session->watched_fd))
		return false;
	session->looked_ns = now;
	return have_ended(session);
}

static uint64_t nr_observed(const struct sonde_session *session)
{
	return session->measurement->type->nr(session->measurement);
}

static void show_progress(struct sonde_session *session, uint64_t now)
{
	if (!session->options.progress || now - session->shown_ns < PROGRESS_NS)
		return;
	session->shown_ns = now;
	session->options.progress(session->options.arg, now - session->start_ns, nr_observed(session));
}

/* Waits for an event. Returns the number of events, 0 after `max_ns`, or a negative errno. */
static int wait_ns(const struct sonde_session *session, uint64_t max_ns)
{
	const struct timespec max = { .tv_sec = (time_t)(max_ns / NS_PER_S), .tv_nsec = (long)(max_ns % NS_PER_S) };
	struct epoll_event events[8];
	int nr = ppoll(&(struct pollfd){ .fd = session->epoll_fd, .events = POLLIN }, 1, &max, NULL);

	if (nr > 0)
		nr = epoll_wait(session->epoll_fd, events, ARRAY_SIZE(events), 0); /* consumes one-shot events */
	return nr < 0 ? -errno : nr;
}

/* Where processes start all the time, each of their records would wake us: then they are read together, now and then. After a quiet time
 * the first ones are read at once; and samples are, always. */
static void rest(struct sonde_session *session)
{
	const struct measurement *measurement = session->measurement;
	uint64_t step_ns = session->rest_ns, now_ns = clock_ns();
	struct pollfd samples[] = { { .fd = sampler_wake_fd(session->engine.sampler), .events = POLLIN },
				    { .fd = measurement->type->fd ? measurement->type->fd(measurement) : -1, .events = POLLIN } };

	session->rested_ns += step_ns;
	if (session->rested_ns + AT_ONCE * step_ns < now_ns)
		session->rested_ns = now_ns - AT_ONCE * step_ns;
	if (session->rested_ns > now_ns + step_ns)
		session->rested_ns = now_ns + step_ns;
	if (session->rested_ns > now_ns)
		ppoll(samples, ARRAY_SIZE(samples), &(struct timespec){ .tv_nsec = (long)(session->rested_ns - now_ns) }, NULL);
}

/* Waits for an event, at most `max_ns`. Auditing goes on meanwhile. */
static int await(struct sonde_session *session, uint64_t max_ns)
{
	uint64_t now_ns = clock_ns(), end_ns = now_ns + max_ns;
	bool is_busy;
	int nr;

	do {
		int err = auditor_step(session->engine.auditor, &is_busy);
		uint64_t left_ns = end_ns > now_ns ? end_ns - now_ns : 0;

		if (err)
			return err;
		nr = wait_ns(session, is_busy && left_ns > NS_PER_MS ? NS_PER_MS : left_ns);
		if (nr < 0 && nr != -EINTR)
			return diag_errno(&session->diag, -nr, "cannot wait for the kernel: %s", strerror(-nr));
		now_ns = clock_ns();
	} while (!nr && is_busy && now_ns < end_ns);
	return 0;
}

/* Reports the intervals that have ended. The last one ends with the run and is reported there. */
static int report_intervals(struct sonde_session *session)
{
	int err = 0;

	while (!err && session->interval_ns < session->end_ns && session->interval_ns <= clock_ns()) {
		err = session->measurement->type->interval(session->measurement, session->interval_ns);
		session->interval_ns += session->options.every_ns;
	}
	return err;
}

static int step(struct sonde_session *session, uint64_t now_ns)
{
	struct measurement *measurement = session->measurement;
	int err = measurement->needs_engine ? session_read(session) : 0;

	if (!err && measurement->type->step)
		err = measurement->type->step(measurement, now_ns, &session->diag);
	show_progress(session, now_ns);
	if (!err && measurement->needs_engine)
		err = session_step_engine(session, now_ns);
	return err ? err : report_intervals(session);
}

static int measure(struct sonde_session *session)
{
	int err = 0;

	while (!err && !is_over(session)) {
		uint64_t now = clock_ns(), border_ns = session_next_border(session),
			 until_ns = border_ns < session->end_ns ? border_ns : session->end_ns,
			 left_ns = until_ns > now ? until_ns - now : 0;
		bool has_more = session->measurement->needs_engine && tracker_has_more(session->engine.tracker);

		if (session->measurement->needs_engine && !has_more)
			rest(session);
		err = await(session, has_more ? 0 : left_ns < ENGINE_STEP_NS ? left_ns : ENGINE_STEP_NS);
		if (!err)
			err = step(session, now);
	}
	return err;
}

/* Starts the measurement. */
static int start(struct sonde_session *session)
{
	const struct sonde_session_options *o = &session->options;
	struct measurement *measurement = session->measurement;
	int err = measurement->needs_engine ? sampler_start(session->engine.sampler, &session->diag) : 0;

	session->start_ns = clock_ns();
	if (!err && measurement->type->start)
		err = measurement->type->start(measurement, &session->diag, &session->start_ns);
	session->window_ns = session->start_ns;
	session->end_ns =
	    o->duration_ns && o->duration_ns < UINT64_MAX - session->start_ns ? session->start_ns + o->duration_ns : UINT64_MAX;
	session->interval_ns = measurement->type->interval && o->every_ns ? session->start_ns + o->every_ns : UINT64_MAX;
	session->account.startup_ns = session->start_ns - session->new_ns;
	if (!err && o->started)
		o->started(o->arg);
	return err;
}

/* After Ctrl-C, which the terminal has sent to the command as well: lets the command handle it and end by itself. */
static void let_end(struct sonde_session *session)
{
	struct pollfd waits[] = { { .events = POLLIN }, { .fd = session->stop_fd, .events = POLLIN } };

	if (have_ended(session)) /* also opens watched_fd, if the stop came before the first check */
		return;
	waits[0].fd = session->watched_fd;
	poll(waits, ARRAY_SIZE(waits), COMMAND_END_MS);
}

static void end_command(struct sonde_session *session)
{
	if (!session->command)
		return;
	if (session->measurement->takes_whole_command && __atomic_load_n(&session->nr_stops, __ATOMIC_RELAXED))
		let_end(session);
	session->command_goes_on = !command_stop(session->command);
	if (session->command_goes_on)
		account_note(&session->account, "'%s' goes on, with the process id %" PRIu32, command_name(session->command),
			     command_tgid(session->command));
}

/* Nothing after *ret_end_ns counts. */
static int stop(struct sonde_session *session, uint64_t *ret_end_ns)
{
	struct measurement *measurement = session->measurement;
	uint64_t end_ns = 0;
	int err;

	if (measurement->takes_whole_command)
		end_command(session);
	err = measurement->type->stop ? measurement->type->stop(measurement, &session->diag, &end_ns) : 0;
	if (measurement->needs_engine)
		sampler_stop(session->engine.sampler);
	*ret_end_ns = !err && end_ns ? end_ns : clock_ns();
	perf_maps_end(MOVE(session->perf_maps), &session->account);
	if (!measurement->takes_whole_command)
		end_command(session);
	return err;
}

/* For the time of the run. The mappings of new processes must be read before they end, and with thousands of switches a second others
 * compete for the CPU. */
static void set_nice(struct sonde_session *session, int nice)
{
	if (nice == session->nice)
		return;
	session->nice = nice;
	priority_set(0, nice);
	engine_set_nice(&session->engine, nice);
}

/* Adds all descriptors that wake the loop. */
static int wait_on_all(struct sonde_session *session)
{
	const struct measurement *measurement = session->measurement;
	int fd = measurement->type->fd ? measurement->type->fd(measurement) : -1;
	int err = fd >= 0 ? wait_on(session, fd) : 0;

	if (!err && measurement->needs_engine)
		err = wait_on(session, tracker_fd(session->engine.tracker)) ?: wait_on(session, sampler_wake_fd(session->engine.sampler));
	if (!err && session->naming)
		err = wait_on(session, naming_thread_fd(session->naming));
	return err;
}

/* What other processes did while the programs were loaded has filled the side-band's rings, which takes seconds on a busy machine. The
 * command's own first records, its mappings, must find room there. */
static int make_room(struct sonde_session *session)
{
	return session->measurement->needs_engine ? tracker_read(session->engine.tracker, &session->diag) : 0;
}

/* Before the start: what a process does to write its map is not what is measured. */
static int begin_perf_maps(struct sonde_session *session)
{
	if (!session->options.perf_map)
		return 0;
	return perf_maps_begin(session->engine.proxy, &session->targets, session->stop_fd, &session->account, &session->perf_maps) ?:
	       make_room(session);
}

/* Runs until the measured part has ended. */
static int observe(struct sonde_session *session)
{
	int err = wait_on_all(session) ?: begin_perf_maps(session) ?: start(session);

	if (!err && session->command)
		err = make_room(session);
	if (!err && session->command) {
		err = command_release(session->command, &session->diag);
		if (err)
			return session_fail(session, (enum sonde_exit)command_failure_code(err), err);
	}
	return err ? err : measure(session);
}

static int make_profile(struct sonde_session *session, uint64_t end_ns)
{
	struct measurement *measurement = session->measurement;
	int err = measurement->needs_engine ? session_name_last(session, end_ns) : 0;

	return err || !measurement->type->finish ? err
						 : measurement->type->finish(measurement, session->start_ns, end_ns, &session->profile);
}

static int run(struct sonde_session *session)
{
	uint64_t end_ns;
	int err, stop_err;

	if (session->measurement->needs_engine) {
		session_want_lines(session);
		set_nice(session, session->nice_before - HURRY);
	}
	err = observe(session);
	stop_err = stop(session, &end_ns);
	err = err ? err : stop_err;
	set_nice(session, session->nice_before);
	if (!err)
		err = make_profile(session, end_ns);
	return err && !session->exit_code ? session_fail_setup(session, err) : err;
}

int sonde_session_run(struct sonde_session *session)
{
	int err;

	if (!session)
		return -EINVAL;
	if (!session->is_ready)
		return session_fail(session, SONDE_EXIT_USAGE,
				    diag_errno(&session->diag, EINVAL, "a session runs once, and only if it was created"));
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
	if (!session->measurement->may_be_empty && !nr_observed(session))
		session_fail(session, SONDE_EXIT_NO_SAMPLES, 0);
	return 0;
}

bool sonde_session_command_status(const struct sonde_session *session, int *ret_status)
{
	return session && session->command && command_ended(session->command, ret_status);
}

bool sonde_session_command_goes_on(const struct sonde_session *session)
{
	return session && session->command_goes_on;
}

struct sonde_counters *sonde_session_counters(struct sonde_session *session)
{
	return session && session->measurement ? counting_set(session->measurement) : NULL;
}

const char *sonde_session_warning(struct sonde_session *session)
{
	const struct account *account = session ? session_account(session) : NULL;

	return account && session->nr_reported_notes < account->nr_notes ? account->notes[session->nr_reported_notes++] : NULL;
}

const char *sonde_profile_source(const struct sonde_session_options *options)
{
	return profile_bpf_source;
}

const char *sonde_version(void)
{
	return SONDE_VERSION;
}
