// SPDX-License-Identifier: Apache-2.0
#include "skywalking/sky_task.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <sonde/sonde.h>

#include "base/clock.h"
#include "base/hold_signals.h"
#include "base/timed_wait.h"
#include "cli/output.h"
#include "cli/session_end.h"
#include "cli/stoppable_session.h"
#include "proxy/proxy.h"

#define MAX_WINDOWS	  128
#define MAX_WINDOWS_BYTES ((size_t)32 << 20)
#define MAX_WARNINGS	  10

struct sky_task {
	struct sky_task_options options;
	pthread_t thread;
	pthread_mutex_t lock;              /* for all below */
	pthread_cond_t has_changed;
	struct stoppable_session current;
	struct sky_stacks windows[MAX_WINDOWS];
	uint32_t first, nr;
	size_t bytes;
	uint64_t start_ns, end_ns;         /* CLOCK_MONOTONIC: whoever sets the clock does not change how long a task lasts */
	uint64_t since_ms, nr_lost, nr_lost_samples;
	bool is_over, is_joined;
	char reason[512];
};

/* --- windows -------------------------------------------------------------------------------------------------------------------------- */

/* With the lock. */
static struct sky_stacks take_first(struct sky_task *task)
{
	struct sky_stacks window = task->windows[task->first];

	task->bytes -= window.names.capacity;
	task->first = (task->first + 1) % MAX_WINDOWS;
	task->nr--;
	return window;
}

static void drop_first(struct sky_task *task)
{
	CLEANUP(sky_stacks_done) struct sky_stacks window = take_first(task);
}

static void fail(struct sky_task *task, const char *reason)
{
	pthread_mutex_lock(&task->lock);
	snprintf(task->reason, sizeof(task->reason), "%s", reason);
	pthread_mutex_unlock(&task->lock);
}

/* After an exec the samples are not those of the process that the server knows. One that has ended ends the session. */
static bool is_other_program(struct sky_task *task)
{
	struct sky_program now;

	if (!sky_program_read(task->options.pid, &now) || sky_program_is(&now, &task->options.program))
		return false;
	fail(task, "the process is another program now");
	return true;
}

static void lose_window(struct sky_task *task)
{
	pthread_mutex_lock(&task->lock);
	task->nr_lost++;
	pthread_mutex_unlock(&task->lock);
}

static uint64_t nr_lost_of(const struct sonde_window *window)
{
	uint64_t nr = 0;

	for (uint32_t i = 0; i < window->nr_counts; i++) {
		if (!strcmp(window->counts[i].group, "lost"))
			nr += window->counts[i].nr;
	}
	return nr;
}

static int take_window(void *arg, const struct sonde_window *window, const void *bytes, size_t size)
{
	struct sky_task *task = arg;
	struct sky_stacks stacks;
	struct diag diag = { 0 };
	int err;

	if (is_other_program(task)) { /* some of its samples are */
		lose_window(task);
		return 0;
	}
	err = sky_stacks_read(&stacks, bytes, size, &diag);
	if (err)
		output_say("task %s: a window is lost: %s", task->options.id, failure_text(&diag, err));
	stacks.start_unix_ns = window->start_unix_ns;
	stacks.duration_ns = window->duration_ns;
	pthread_mutex_lock(&task->lock);
	task->nr_lost_samples += nr_lost_of(window);
	if (err) { /* count_window counts it */
		sky_stacks_done(&stacks);
	} else {
		while (task->nr == MAX_WINDOWS || (task->nr && task->bytes + stacks.names.capacity > MAX_WINDOWS_BYTES)) {
			drop_first(task);
			task->nr_lost++;
		}
		task->bytes += stacks.names.capacity;
		task->windows[(task->first + task->nr++) % MAX_WINDOWS] = stacks;
	}
	pthread_mutex_unlock(&task->lock);
	return err;
}

/* Of each window, whether it could be made or not. */
static void count_window(void *arg, const struct sonde_window *window)
{
	if (window->err)
		lose_window(arg);
}

bool sky_task_take_window(struct sky_task *task, struct sky_stacks *ret_window)
{
	bool is_there;

	pthread_mutex_lock(&task->lock);
	is_there = task->nr;
	if (is_there)
		*ret_window = take_first(task);
	pthread_mutex_unlock(&task->lock);
	return is_there;
}

/* --- the session ---------------------------------------------------------------------------------------------------------------------- */

static void note_start(void *arg)
{
	struct sky_task *task = arg;

	pthread_mutex_lock(&task->lock);
	task->since_ms = clock_of_ns(CLOCK_REALTIME) / NS_PER_MS;
	pthread_mutex_unlock(&task->lock);
}

/* Some times a second. */
static void look(void *arg, uint64_t elapsed_ns, uint64_t nr_samples)
{
	struct sky_task *task = arg;
	bool is_other = is_other_program(task);

	pthread_mutex_lock(&task->lock);
	if (!task->current.is_stopped && (is_other || clock_ns() >= task->end_ns))
		stoppable_session_stop(&task->current); /* once: a second call would hurry the names */
	pthread_mutex_unlock(&task->lock);
}

/* Waits for the task's time. False: it was stopped before. */
static bool wait_for_start(struct sky_task *task)
{
	bool goes_on;

	pthread_mutex_lock(&task->lock);
	while (!task->current.is_stopped && clock_ns() < task->start_ns)
		timed_cond_wait(&task->has_changed, &task->lock, task->start_ns);
	goes_on = !task->current.is_stopped;
	pthread_mutex_unlock(&task->lock);
	return goes_on;
}

/* Is it still that process, and can we see what it has mapped? 0; -ESRCH; or as proxy_new. */
static int look_at_process(const struct sky_task_options *options, struct diag *diag)
{
	CLEANUP(proxy_freep) struct proxy *proxy = NULL;
	CLEANUP(fclosep) FILE *maps = NULL;
	struct sky_program now;
	int err = proxy_new(diag, &proxy);

	if (err)
		return err;
	if (!sky_program_read(options->pid, &now) || !sky_program_is(&now, &options->program) ||
	    proxy_maps(proxy, options->pid, now.thread, &maps) || fgetc(maps) == EOF)
		return diag_errno(diag, ESRCH, "this process could not be profiling");
	return 0;
}

/* Kernel symbols that cannot be read, files that do not answer, ...: the task goes on. */
static void say_warnings(const struct sky_task *task, struct sonde_session *session)
{
	const char *warning;

	for (int i = 0; i < MAX_WARNINGS && (warning = sonde_session_warning(session)); i++)
		output_say("task %s: %s", task->options.id, warning);
}

static void end_session(void *arg, struct sonde_session *session, int err)
{
	struct sky_task *task = arg;

	say_warnings(task, session);
	if (err)
		fail(task, sonde_session_error(session));
}

static void profile(struct sky_task *task)
{
	const struct sonde_sampling_options sampling = {
		.size = sizeof(sampling), .event = "cpu-clock", .period = task->options.period_ns
	};
	const struct sonde_session_options options = {
		.size = sizeof(options),
		.command_line = "sonde agent",
		.mode = task->options.is_off_cpu ? SONDE_OFF_CPU : SONDE_ON_CPU,
		.sampling = &sampling,
		.tgids = &task->options.pid,
		.nr_tgids = 1,
		.every_ns = task->options.flush_ns,
		.profile_format = "jsonl",
		.profile = take_window,
		.started = note_start,
		.progress = look,
		.window = count_window,
		.arg = task,
	};

	stoppable_session_run(&task->current, &options, end_session, task);
}

static void *run(void *arg)
{
	struct sky_task *task = arg;
	struct diag diag = { 0 };
	int err;

	if (!wait_for_start(task))
		fail(task, "stopped before its time");
	else if ((err = look_at_process(&task->options, &diag)))
		fail(task, failure_text(&diag, err));
	else
		profile(task);
	pthread_mutex_lock(&task->lock);
	task->is_over = true;
	pthread_mutex_unlock(&task->lock);
	return NULL;
}

/* 0 for what is over. */
static uint64_t monotonic_of(uint64_t unix_ns)
{
	uint64_t now_unix_ns = clock_of_ns(CLOCK_REALTIME);

	return unix_ns > now_unix_ns ? clock_ns() + (unix_ns - now_unix_ns) : 0;
}

/* --- its owner ------------------------------------------------------------------------------------------------------------------------ */

int sky_task_start(const struct sky_task_options *options, struct diag *diag, struct sky_task **ret_task)
{
	HOLD_SIGNALS();
	struct sky_task *task = calloc(1, sizeof(*task));
	int err;

	if (!task)
		return -ENOMEM;
	task->options = *options;
	task->current.lock = &task->lock;
	task->start_ns = monotonic_of(options->start_unix_ns);
	task->end_ns = monotonic_of(options->end_unix_ns);
	pthread_mutex_init(&task->lock, NULL);
	timed_cond_init(&task->has_changed);
	err = pthread_create(&task->thread, NULL, run, task);
	if (err) {
		free(task);
		return diag_errno(diag, err, "no thread for a task: %s", strerror(err));
	}
	*ret_task = task;
	return 0;
}

bool sky_task_join(struct sky_task *task, uint64_t until_ns)
{
	if (!task->is_joined)
		task->is_joined = timed_join(task->thread, until_ns);
	return task->is_joined;
}

void sky_task_free(struct sky_task *task)
{
	if (!task)
		return;
	if (!task->is_joined) {
		sky_task_stop(task);
		pthread_join(task->thread, NULL);
	}
	while (task->nr)
		drop_first(task);
	pthread_cond_destroy(&task->has_changed);
	pthread_mutex_destroy(&task->lock);
	free(task);
}

const struct sky_task_options *sky_task_options(const struct sky_task *task)
{
	return &task->options;
}

bool sky_task_extend(struct sky_task *task, uint64_t end_unix_ns)
{
	uint64_t end_ns = monotonic_of(end_unix_ns);
	bool goes_on;

	pthread_mutex_lock(&task->lock);
	goes_on = !task->current.is_stopped && !task->is_over;
	if (goes_on && end_ns > task->end_ns)
		task->end_ns = end_ns;
	pthread_mutex_unlock(&task->lock);
	return goes_on;
}

void sky_task_end_by(struct sky_task *task, uint64_t end_unix_ns)
{
	uint64_t end_ns = monotonic_of(end_unix_ns);

	pthread_mutex_lock(&task->lock);
	if (end_ns < task->end_ns)
		task->end_ns = end_ns;
	pthread_mutex_unlock(&task->lock);
}

void sky_task_stop(struct sky_task *task)
{
	pthread_mutex_lock(&task->lock);
	stoppable_session_stop(&task->current);
	pthread_cond_signal(&task->has_changed);
	pthread_mutex_unlock(&task->lock);
}

bool sky_task_is_over(struct sky_task *task, const char **ret_reason)
{
	bool is_over;

	pthread_mutex_lock(&task->lock);
	is_over = task->is_over;
	pthread_mutex_unlock(&task->lock);
	*ret_reason = task->reason; /* nobody writes it any more */
	return is_over;
}

uint64_t sky_task_since_ms(struct sky_task *task)
{
	uint64_t since_ms;

	pthread_mutex_lock(&task->lock);
	since_ms = task->since_ms;
	pthread_mutex_unlock(&task->lock);
	return since_ms;
}

struct sky_task_losses sky_task_losses(struct sky_task *task)
{
	struct sky_task_losses losses;

	pthread_mutex_lock(&task->lock);
	losses = (struct sky_task_losses){ .nr_windows = task->nr_lost, .nr_samples = task->nr_lost_samples };
	pthread_mutex_unlock(&task->lock);
	return losses;
}
