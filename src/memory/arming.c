// SPDX-License-Identifier: Apache-2.0
#include "memory/arming.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hold_signals.h"
#include "base/interned.h"
#include "base/priority.h"
#include "base/timed_wait.h"
#include "engine/target.h"
#include "memory/own_function.h"
#include "memory/thread_clocks.h"

#define MIN_WINDOW_NS (2 * NS_PER_MS)
#define MAX_WINDOW_NS (32 * NS_PER_MS) /* of a process that calls seldom */
#define MAX_PART 0.01                  /* of the CPU time of the processes, for probes */
#define LEAST_CPUS 0.05                /* what is allowed to one that uses less */
#define MIN_PAUSE_NS (60 * NS_PER_MS)  /* in the mean, besides the waits for the kernel, which are no chance */
#define MAX_PAUSE_NS (500 * NS_PER_MS) /* after a long window in which the process, idle before, began to work: the next is short */
#define STEP_NS (20 * NS_PER_MS)       /* a process that ends takes the CPU time with it that was used since */
#define NICE (-20)                     /* a window that this thread ends late is a long one */
#define READ_PAUSE 100         /* times as long as listing all threads and reading their CPU time took: some processes have thousands */
#define TRIAL_CALLS 128
#define SMOOTHING 0.1
#define TRAP_IN_PROGRAMS 1.05 /* times as much as beside our own function, as measured: docs/internals/memory.md */
#define MAX_BYTES ((uint64_t)64 << 20)
#define NO_BLOCK_BYTES (1ULL << 47) /* no process has room for it: such a call fails, though its end be not seen */

struct known_thread {
	uint32_t tgid, tid;      /* key */
	uint64_t used_ns;        /* when it was last looked at */
};

#define THREADS_INIT INTERNED_INIT(struct known_thread, offsetof(struct known_thread, used_ns), MAX_BYTES)

struct last_hit { /* of a thread in the window */
	uint32_t tgid, tid;      /* key */
	uint32_t nr_traps, nr_runs, number, hit; /* hit: its index */
	uint64_t busy_ns;
	bool is_left_out;        /* its clock was not read, as there are too many threads: its CPU time counts, not what it calls */
};

struct arming {
	struct alloc_programs *programs;
	const uint32_t *tgids;
	uint32_t nr_tgids;
	uint64_t *process_ns;    /* CPU time of each */
	struct thread_clocks clocks;
	struct interned threads;
	uint64_t window_ns, wait_ns, pause_ns; /* of the next; of the last one for the kernel; in the mean, before the next */
	uint64_t next_read_ns;   /* of the threads' CPU time, at the soonest */
	uint64_t trial_ns;       /* CPU time that calls of our own function took in the last window */
	double cpus;             /* that the processes have used, in the mean of the last cycles */
	uint64_t cpus_read_ns;
	double cpus_time_ns;     /* of that mean */
	double trap_ns, mean_trap_ns; /* what one probe costs besides the program, in that window; in some of the last */
	bool is_first;
	pthread_t thread;
	bool is_started;
	pthread_mutex_t lock;    /* of what follows */
	pthread_cond_t has_changed;
	bool is_ending;
	struct estimate *estimate;
	struct arming_counts counts;
};

/* --- creation ------------------------------------------------------------------------------------------------------------------------- */

int arming_new(struct alloc_programs *programs, const uint32_t *tgids, uint32_t nr_tgids, struct diag *diag, struct arming **ret_arming)
{
	struct arming *arming = calloc(1, sizeof(*arming));
	char path[OWN_FUNCTION_PATH];
	uint64_t off;
	int err;

	if (!arming)
		return -ENOMEM;
	off = own_function_off(path, sizeof(path));
	err = off ? alloc_programs_attach_own(programs, path, off) : -ENOENT;
	arming->programs = programs;
	arming->tgids = tgids;
	arming->nr_tgids = nr_tgids;
	arming->window_ns = MIN_WINDOW_NS;
	arming->pause_ns = MIN_PAUSE_NS;
	arming->is_first = true;
	arming->threads = THREADS_INIT;
	pthread_mutex_init(&arming->lock, NULL);
	timed_cond_init(&arming->has_changed);
	arming->process_ns = calloc(nr_tgids + 1, sizeof(*arming->process_ns));
	arming->estimate = estimate_new();
	if (!arming->process_ns || !arming->estimate)
		err = -ENOMEM;
	if (err) {
		arming_free(arming);
		return diag_errno(diag, -err, "cannot measure what a probe costs: %s", strerror(-err));
	}
	*ret_arming = arming;
	return 0;
}

void arming_free(struct arming *arming)
{
	if (!arming)
		return;
	arming_end(arming);
	thread_clocks_done(&arming->clocks);
	interned_done(&arming->threads);
	estimate_free(arming->estimate);
	free(arming->process_ns);
	pthread_mutex_destroy(&arming->lock);
	pthread_cond_destroy(&arming->has_changed);
	free(arming);
}

/* --- chance and time ------------------------------------------------------------------------------------------------------------------ */

static uint32_t random_number(void)
{
	uint32_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (uint32_t)clock_ns();
	return number;
}

/* No rhythm of a program can be in step with such pauses. */
static uint64_t draw_ns(uint64_t mean_ns)
{
	double chance = ((double)random_number() + 1) / 4294967296.0;

	return (uint64_t)(-log(chance) * (double)mean_ns);
}

/* False: the end has come. */
static bool wait_until(struct arming *arming, uint64_t until_ns)
{
	bool goes_on;

	pthread_mutex_lock(&arming->lock);
	while (!arming->is_ending && clock_ns() < until_ns)
		timed_cond_wait(&arming->has_changed, &arming->lock, until_ns);
	goes_on = !arming->is_ending;
	pthread_mutex_unlock(&arming->lock);
	return goes_on;
}

/* As programs do beside their allocators' functions: after a trap such code runs slower for a while, too. */
static void use_block(const struct arming *arming)
{
	void *volatile block;
	char text[64];

	if (arming->counts.is_wide) { /* our malloc is probed, too */
		snprintf(text, sizeof(text), "%d", arming->is_first);
		return;
	}
	block = malloc(64);
	free(block);
}

/* Calls our own function, which is probed as the allocators' are. The CPUs' speed, and what runs beside us, change what a probe costs: so
 * it is measured in the window itself. */
static void try_probes(struct arming *arming)
{
	uint64_t start_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID), without_ns;

	for (int call = 0; call < TRIAL_CALLS; call++)
		use_block(arming);
	without_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int call = 0; call < TRIAL_CALLS; call++) {
		own_function();
		use_block(arming);
	}
	arming->trial_ns = clock_of_ns(CLOCK_THREAD_CPUTIME_ID) - without_ns - (without_ns - start_ns);
}

/* --- CPU time ------------------------------------------------------------------------------------------------------------------------- */

/* In the mean of the last second or so; at first of the time since the start. */
static void note_cpus(struct arming *arming, uint64_t used_ns, uint64_t read_ns)
{
	double time_ns = (double)(read_ns - arming->cpus_read_ns);

	arming->cpus_time_ns = fmin(arming->cpus_time_ns + time_ns, (double)NS_PER_S);
	if (time_ns > 0)
		arming->cpus += ((double)used_ns / time_ns - arming->cpus) * fmin(time_ns / arming->cpus_time_ns, 1);
}

static void read_processes(struct arming *arming)
{
	uint64_t sum_ns = 0, read_ns = clock_ns();

	for (uint32_t i = 0; i < arming->nr_tgids; i++) {
		uint64_t now_ns = process_cpu_time(arming->tgids[i]);

		if (now_ns < arming->process_ns[i])
			continue; /* it has ended */
		sum_ns += now_ns - arming->process_ns[i];
		arming->process_ns[i] = now_ns;
	}
	if (!arming->is_first)
		note_cpus(arming, sum_ns, read_ns);
	arming->cpus_read_ns = read_ns;
	pthread_mutex_lock(&arming->lock);
	if (!arming->is_first)
		estimate_all_cpu(arming->estimate, sum_ns);
	pthread_mutex_unlock(&arming->lock);
}

/* The caller holds the lock. */
static int read_thread(struct arming *arming, uint32_t tgid, uint32_t tid, struct interned *now)
{
	struct known_thread thread = { .tgid = tgid, .tid = tid, .used_ns = thread_clocks_used(tgid, tid) };
	uint32_t number = interned_find(&arming->threads, &thread);
	uint64_t before_ns = number == INTERNED_NONE ? 0 : ((const struct known_thread *)interned_at(&arming->threads, number))->used_ns;

	if (interned_add(now, &thread) == INTERNED_NONE)
		return -ENOMEM;
	if (arming->is_first || thread.used_ns < before_ns)
		return 0;
	return estimate_cpu(arming->estimate, tgid, tid, thread.used_ns - before_ns);
}

/* Those that have ended are forgotten. */
static int read_threads(struct arming *arming)
{
	struct interned now = THREADS_INIT;
	int err = 0;

	pthread_mutex_lock(&arming->lock);
	for (uint32_t i = 0; !err && i < arming->clocks.nr; i++)
		err = read_thread(arming, arming->clocks.list[i].tgid, arming->clocks.list[i].tid, &now);
	pthread_mutex_unlock(&arming->lock);
	interned_done(&arming->threads);
	arming->threads = now;
	return err;
}

/* --- a window ------------------------------------------------------------------------------------------------------------------------- */

struct seen { /* in a window */
	const struct sonde_alloc_hit *hits;
	uint32_t nr, nr_lost;
	double weight, paid_ns;
	struct interned last;
};

/* The last hit of a thread has the sums of the window. */
static int note_last(struct seen *seen, uint32_t i)
{
	const struct sonde_alloc_hit *hit = &seen->hits[i];
	const struct last_hit empty = { .tgid = hit->tgid, .tid = hit->tid, .number = ESTIMATE_NONE };
	uint32_t number = interned_add(&seen->last, &empty);
	struct last_hit *last;

	if (number == INTERNED_NONE)
		return -ENOMEM;
	last = interned_at(&seen->last, number);
	if (hit->nr_traps < last->nr_traps)
		return 0;
	last->nr_traps = hit->nr_traps;
	last->nr_runs = hit->nr_runs;
	last->busy_ns = hit->busy_ns;
	last->hit = i;
	return 0;
}

/* From our own hits. */
static void measure_trap(struct arming *arming, const struct seen *seen)
{
	uint32_t number = interned_find(&seen->last, &(const struct last_hit){ .tgid = (uint32_t)getpid(), .tid = (uint32_t)gettid() });
	const struct last_hit *own = number == INTERNED_NONE ? NULL : interned_at(&seen->last, number);

	if (!own || !own->nr_runs)
		return;
	arming->trap_ns = (double)arming->trial_ns / own->nr_traps - (double)own->busy_ns / own->nr_runs;
	arming->trap_ns *= TRAP_IN_PROGRAMS;
	arming->mean_trap_ns += (arming->trap_ns - arming->mean_trap_ns) * (arming->mean_trap_ns > 0 ? SMOOTHING : 1);
}

static double last_run_ns(const struct last_hit *last)
{
	return last->nr_runs ? (double)last->busy_ns / last->nr_runs : 0;
}

/* What the probes cost all threads, those included whose CPU time is not known. */
static void note_paid(const struct arming *arming, struct seen *seen)
{
	for (uint32_t i = 0; i < seen->last.nr; i++) {
		const struct last_hit *last = interned_at(&seen->last, i);

		if (last->tgid != (uint32_t)getpid())
			seen->paid_ns += last->nr_traps * (arming->trap_ns + last_run_ns(last));
	}
	if (seen->nr) /* of those that were lost nothing else is known */
		seen->paid_ns *= 1 + (double)seen->nr_lost / seen->nr;
}

static void add_thread(struct arming *arming, struct seen *seen, const struct thread_clock *clock)
{
	struct estimate_window window = { .tgid = clock->tgid, .tid = clock->tid, .weight = seen->weight,
					  .cpu_ns = thread_clocks_in_window(&arming->clocks, clock) };
	uint32_t number = interned_find(&seen->last, &(const struct last_hit){ .tgid = clock->tgid, .tid = clock->tid });
	struct last_hit *last = number == INTERNED_NONE ? NULL : interned_at(&seen->last, number);

	if (last) {
		double run_ns = last_run_ns(last);

		window.trap_ns = last->nr_traps * arming->trap_ns;
		window.cost_ns = window.trap_ns + last->nr_traps * run_ns;
		window.usual_cost_ns = last->nr_traps * (arming->mean_trap_ns + run_ns);
	}
	if (last && clock->is_left_out)
		last->is_left_out = true;
	if ((!last && !window.cpu_ns) || clock->is_left_out)
		return;
	number = estimate_add(arming->estimate, &window);
	if (last)
		last->number = window.cpu_ns ? number : ESTIMATE_NONE;
}

/* No block came of it. A call that has not returned when the thread has made another one has thrown; the last one may be in progress. */
static bool has_failed(const struct seen *seen, uint32_t i, const struct last_hit *last)
{
	const struct sonde_alloc_hit *hit = &seen->hits[i];

	return hit->failed || hit->bytes >= NO_BLOCK_BYTES || (!hit->returned && last->hit != i);
}

static int add_hit(struct arming *arming, struct seen *seen, uint32_t i)
{
	const struct sonde_alloc_hit *hit = &seen->hits[i];
	const struct sonde_stack_ids of_hit = { .user_stack = hit->user_stack,
						.runtime_stack = hit->runtime_stack,
						.user_state = hit->user_state,
						.runtime_state = hit->runtime_state,
						.generation = hit->generation };
	const struct stack_ids ids = { .ids = known_ids(&of_hit), .tgid = hit->tgid, .user_generation = hit->generation };
	struct last_hit *last = interned_at(&seen->last,
					    interned_find(&seen->last, &(const struct last_hit){ .tgid = hit->tgid, .tid = hit->tid }));

	if (hit->tgid == (uint32_t)getpid())
		return 0;
	arming->counts.nr_hits++;
	if (has_failed(seen, i, last)) {
		arming->counts.nr_failed++;
		return 0;
	}
	if (last->is_left_out) {
		arming->counts.nr_left_out++;
		return 0;
	}
	if (last->number == ESTIMATE_NONE) {
		arming->counts.nr_untimed++;
		last->number = estimate_add(arming->estimate, &(const struct estimate_window){ .tgid = hit->tgid, .tid = ESTIMATE_BY_TIME,
											      .weight = seen->weight });
	}
	return last->number == ESTIMATE_NONE ? -ENOMEM : estimate_hit(arming->estimate, last->number, &ids, hit->bytes);
}

/* The caller holds the lock. */
static int add_window(struct arming *arming, struct seen *seen)
{
	int err = 0;

	estimate_begin(arming->estimate);
	for (uint32_t i = 0; !err && i < seen->nr; i++)
		err = note_last(seen, i);
	measure_trap(arming, seen);
	note_paid(arming, seen);
	for (uint32_t i = 0; !err && i < arming->clocks.nr; i++)
		add_thread(arming, seen, &arming->clocks.list[i]);
	for (uint32_t i = 0; !err && i < seen->nr; i++)
		err = add_hit(arming, seen, i);
	arming->counts.nr_lost += seen->nr_lost;
	arming->counts.paid_ns += (uint64_t)seen->paid_ns;
	arming->counts.trap_ns = arming->trap_ns;
	return err;
}

/* How long the next window and the pause before it last, by what this one cost. They depend on what was seen before alone, and the weight
 * on them: so the estimate stays right in the mean. */
static void plan_next(struct arming *arming, double paid_ns)
{
	double part = MAX_PART * fmax(arming->cpus, LEAST_CPUS), next_ns = (double)arming->window_ns;
	double allowed_ns = part * (double)(arming->wait_ns + MIN_PAUSE_NS + arming->window_ns);

	if (paid_ns < allowed_ns / 4)
		next_ns *= 2;
	else if (paid_ns > allowed_ns)
		next_ns *= allowed_ns / paid_ns;
	next_ns = fmin(fmax(next_ns, (double)MIN_WINDOW_NS), (double)MAX_WINDOW_NS);
	arming->window_ns = (uint64_t)next_ns;
	arming->pause_ns = (uint64_t)fmin(fmax(paid_ns / part - (double)arming->wait_ns, (double)MIN_PAUSE_NS), (double)MAX_PAUSE_NS);
}

static void widen_probes(struct arming *arming)
{
	for (uint32_t i = 0; i < arming->nr_tgids; i++) {
		if (!target_lost_first_thread(arming->tgids[i]))
			continue;
		alloc_programs_widen(arming->programs, arming->tgids[i]);
		pthread_mutex_lock(&arming->lock);
		arming->counts.is_wide = true;
		pthread_mutex_unlock(&arming->lock);
	}
}

/* Opens the gate for a window; *ret_armed_ns: the time that probes were in the processes. False: there is none, or the end has come: a
 * window that it cut short would count as a whole one. */
static bool pass_window(struct arming *arming, uint64_t *ret_open_ns, uint64_t *ret_armed_ns)
{
	uint64_t armed_at_ns, opened_ns, closed_ns;
	bool is_whole = false;

	widen_probes(arming);
	thread_clocks_open(&arming->clocks, random_number()); /* before there are probes: it takes a while where threads are many */
	armed_at_ns = clock_ns();
	if (alloc_programs_arm(arming->programs)) {
		thread_clocks_begin(&arming->clocks);
		alloc_programs_open_gate(arming->programs, (uint32_t)arming->counts.nr_windows + 1);
		opened_ns = clock_ns();
		try_probes(arming);
		is_whole = wait_until(arming, opened_ns + arming->window_ns);
		thread_clocks_end(&arming->clocks);
		alloc_programs_close_gate(arming->programs);
		closed_ns = clock_ns();
		*ret_open_ns = closed_ns - opened_ns;
		*ret_armed_ns = closed_ns - armed_at_ns;
	}
	alloc_programs_disarm(arming->programs);
	thread_clocks_close(&arming->clocks);
	return is_whole;
}

static int make_window(struct arming *arming)
{
	uint64_t start_ns = clock_ns(), open_ns = 0, armed_ns = 0;
	struct seen seen = { .last = INTERNED_INIT(struct last_hit, offsetof(struct last_hit, nr_traps), MAX_BYTES) };
	int err = thread_clocks_list(&arming->clocks, arming->tgids, arming->nr_tgids);

	if (err || !pass_window(arming, &open_ns, &armed_ns))
		return err;
	seen.weight = (double)(arming->pause_ns + arming->wait_ns + arming->window_ns) / (double)arming->window_ns;
	seen.hits = alloc_programs_hits(arming->programs, &seen.nr, &seen.nr_lost);
	pthread_mutex_lock(&arming->lock);
	err = add_window(arming, &seen);
	arming->counts.nr_windows++;
	arming->counts.open_ns += open_ns;
	arming->counts.armed_ns += armed_ns;
	pthread_mutex_unlock(&arming->lock);
	interned_done(&seen.last);
	arming->wait_ns = clock_ns() - start_ns - open_ns;
	plan_next(arming, seen.paid_ns);
	return err;
}

/* --- the thread ----------------------------------------------------------------------------------------------------------------------- */

/* False: the end has come. */
static bool pass_pause(struct arming *arming)
{
	uint64_t until_ns = clock_ns() + draw_ns(arming->pause_ns), now_ns;

	while ((now_ns = clock_ns()) < until_ns) {
		if (!wait_until(arming, now_ns + STEP_NS < until_ns ? now_ns + STEP_NS : until_ns))
			return false;
		read_processes(arming);
	}
	return true;
}

static int read_cpu(struct arming *arming)
{
	uint64_t start_ns = clock_ns();
	int err = 0;

	if (start_ns >= arming->next_read_ns) {
		err = thread_clocks_list(&arming->clocks, arming->tgids, arming->nr_tgids) ?: read_threads(arming);
		arming->next_read_ns = clock_ns() + (clock_ns() - start_ns) * READ_PAUSE;
	}
	read_processes(arming);
	return err;
}

static void *run(void *arg)
{
	struct arming *arming = arg;
	int err;

	priority_set(0, NICE);
	err = read_cpu(arming);
	arming->is_first = false; /* what has been used from now on counts */
	while (!err && pass_pause(arming))
		err = make_window(arming) ?: read_cpu(arming);
	arming->next_read_ns = 0;
	err = err ?: read_cpu(arming);
	pthread_mutex_lock(&arming->lock);
	arming->counts.err = err;
	pthread_mutex_unlock(&arming->lock);
	return NULL;
}

int arming_start(struct arming *arming)
{
	HOLD_SIGNALS();
	int err = pthread_create(&arming->thread, NULL, run, arming);

	arming->is_started = !err;
	return -err;
}

void arming_end(struct arming *arming)
{
	if (!arming->is_started)
		return;
	pthread_mutex_lock(&arming->lock);
	arming->is_ending = true;
	pthread_cond_signal(&arming->has_changed);
	pthread_mutex_unlock(&arming->lock);
	pthread_join(arming->thread, NULL);
	arming->is_started = false;
}

int arming_take(struct arming *arming, struct estimate **ret_estimate)
{
	struct estimate *next = estimate_new();

	if (!next)
		return -ENOMEM;
	pthread_mutex_lock(&arming->lock);
	*ret_estimate = arming->estimate;
	arming->estimate = next;
	pthread_mutex_unlock(&arming->lock);
	return 0;
}

void arming_get_counts(struct arming *arming, struct arming_counts *ret_counts)
{
	pthread_mutex_lock(&arming->lock);
	*ret_counts = arming->counts;
	pthread_mutex_unlock(&arming->lock);
}
