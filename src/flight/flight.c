// SPDX-License-Identifier: Apache-2.0
#include "flight/flight.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hold_signals.h"
#include "base/timed_wait.h"
#include "base/told.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "flight/condition.h"
#include "flight/crash_watch.h"
#include "flight/incident.h"
#include "flight/oom_watch.h"
#include "flight/ring.h"
#include "store/packed_body.h"

#define MAX_AN_HOUR 6 /* incidents */
#define HOUR_NS	    (3600 * NS_PER_S)
#define MAX_FIRED   8
#define WORDS_BYTES 96
#define LATE_NS	    (60 * NS_PER_S) /* after the window in which an incident ends: one that does not come is not waited for longer */

struct fired {
	enum trigger_kind kind;
	char words[WORDS_BYTES];
};

struct flight {
	struct flight_options options;
	pthread_t thread;
	bool is_started;
	struct crash_watch *crash_watch;           /* NULL: none */
	struct condition *conditions[TRIGGER_MAX]; /* by trigger; NULL: others look at it */
	struct oom_watch oom_watch;
	/* the thread's own, and of whoever starts it */
	struct incident incident;
	uint64_t begins_ns[MAX_AN_HOUR]; /* of incidents: a ring */
	uint64_t nr_unread_before;       /* by conditions that are gone */
	uint64_t told_limited, told_early;
	pthread_mutex_t lock;            /* for all below */
	pthread_cond_t has_changed;
	struct ring ring;
	uint64_t newest_ns;              /* end of the last window that came */
	struct fired fired[MAX_FIRED];
	uint32_t nr_fired;
	bool is_ending, has_new, is_sampling;
	struct flight_numbers numbers;
};

struct flight *flight_new(void)
{
	struct flight *flight = calloc(1, sizeof(*flight));

	if (!flight)
		return NULL;
	pthread_mutex_init(&flight->lock, NULL);
	timed_cond_init(&flight->has_changed);
	flight->told_limited = flight->told_early = 1;
	flight->oom_watch.log_fd = -1;
	return flight;
}

void flight_free(struct flight *flight)
{
	if (!flight)
		return;
	ring_done(&flight->ring);
	pthread_cond_destroy(&flight->has_changed);
	pthread_mutex_destroy(&flight->lock);
	free(flight);
}

/* --- windows -------------------------------------------------------------------------------------------------------------------------- */

static void add(struct flight *flight, const struct ring_window *window)
{
	uint64_t nr_early;
	uint32_t nr;

	pthread_mutex_lock(&flight->lock);
	nr = ring_add(&flight->ring, window);
	nr_early = flight->numbers.nr_early += nr;
	flight->newest_ns = window->start_ns + window->duration_ns;
	flight->has_new = true;
	pthread_cond_signal(&flight->has_changed);
	pthread_mutex_unlock(&flight->lock);
	if (nr && is_told_at(nr_early, &flight->told_early))
		output_say("the recorder has no room for its time: dropped before it, so far: %" PRIu64
			   " windows; recorder-max-bytes gives more",
			   nr_early);
}

int flight_take(struct flight *flight, const struct sonde_window *window, const void *bytes, size_t size)
{
	struct ring_window own = { .start_ns = window->start_unix_ns - clock_unix_offset_ns(),
				   .start_unix_ns = window->start_unix_ns,
				   .duration_ns = window->duration_ns,
				   .nr_samples = window->nr_samples };
	int err = packed_body_make(bytes, size, NULL, &own.packed, &own.size);

	if (!err)
		add(flight, &own);
	return err;
}

/* The oldest that belongs to the incident. */
static bool next_of_incident(struct flight *flight, struct ring_window *ret_window)
{
	bool is_there;

	pthread_mutex_lock(&flight->lock);
	is_there = flight->ring.nr && flight->ring.list[0].start_ns < flight->incident.until_ns && ring_take(&flight->ring, ret_window);
	pthread_mutex_unlock(&flight->lock);
	return is_there;
}

/* False: more comes. */
static bool is_over(struct flight *flight)
{
	uint64_t newest_ns;

	pthread_mutex_lock(&flight->lock);
	newest_ns = flight->newest_ns;
	pthread_mutex_unlock(&flight->lock);
	return newest_ns >= flight->incident.until_ns ||
	       clock_ns() >= flight->incident.until_ns + flight->options.window_ns + LATE_NS;
}

static void end_incident(struct flight *flight, uint64_t early_ns)
{
	incident_end(&flight->incident, flight->options.store_name, early_ns);
	pthread_mutex_lock(&flight->lock);
	flight->numbers.in_incident = false;
	pthread_mutex_unlock(&flight->lock);
}

/* No more windows come for it. */
static void end_early(struct flight *flight)
{
	uint64_t now_ns = clock_ns(), until_ns = flight->incident.until_ns;

	if (flight->incident.is_on)
		end_incident(flight, until_ns > now_ns ? until_ns - now_ns : 0);
}

static void store_windows(struct flight *flight)
{
	struct incident *incident = &flight->incident;
	struct ring_window window;

	while (incident->is_on && next_of_incident(flight, &window)) {
		uint64_t nr_lost = incident->nr_lost;

		incident_store(incident, &window, flight->options.store, flight->options.store_lock);
		ring_window_done(&window);
		pthread_mutex_lock(&flight->lock);
		flight->numbers.nr_lost += incident->nr_lost - nr_lost;
		flight->numbers.nr_stored += incident->nr_lost == nr_lost;
		pthread_mutex_unlock(&flight->lock);
	}
	if (incident->is_on && is_over(flight))
		end_incident(flight, 0);
}

/* --- triggers ------------------------------------------------------------------------------------------------------------------------- */

/* True: the incident in progress goes on for longer. */
static bool extend(struct flight *flight, uint64_t now_ns)
{
	const struct flight_options *options = &flight->options;
	struct incident *incident = &flight->incident;
	uint64_t until_ns = now_ns + options->after_ns, last_ns = incident->begin_ns + options->before_ns + options->after_ns;

	if (until_ns > last_ns)
		until_ns = last_ns;
	if (until_ns <= incident->until_ns)
		return false;
	incident->until_ns = until_ns;
	return true;
}

/* True: a new one begins; false: there were too many in the last hour. */
static bool begin(struct flight *flight, uint64_t now_ns)
{
	uint64_t *oldest_ns = &flight->begins_ns[0];

	for (uint32_t i = 1; i < MAX_AN_HOUR; i++) {
		if (flight->begins_ns[i] < *oldest_ns)
			oldest_ns = &flight->begins_ns[i];
	}
	if (*oldest_ns && now_ns - *oldest_ns < HOUR_NS)
		return false;
	*oldest_ns = now_ns;
	incident_begin(&flight->incident, now_ns, now_ns + flight->options.after_ns);
	return true;
}

static void say_begin(const struct flight *flight, const char *trigger, const char *words)
{
	const struct flight_options *options = &flight->options;

	output_say("incident: %s%s%s: storing the last %" PRIu64 " s and the next %" PRIu64 " s", trigger, *words ? ": " : "", words,
		   options->before_ns / NS_PER_S, options->after_ns / NS_PER_S);
}

/* Counts it. Returns how many were limited so far. */
static uint64_t count(struct flight *flight, bool begins, bool extends, const char *note)
{
	struct flight_numbers *numbers = &flight->numbers;
	uint64_t nr_limited;

	pthread_mutex_lock(&flight->lock);
	numbers->nr_incidents += begins;
	numbers->nr_extended += extends;
	numbers->nr_limited += !begins && !extends;
	numbers->in_incident = flight->incident.is_on;
	if (begins || extends)
		snprintf(numbers->last, sizeof(numbers->last), "%s", note);
	nr_limited = numbers->nr_limited;
	pthread_mutex_unlock(&flight->lock);
	return nr_limited;
}

static void fire(struct flight *flight, const char *trigger, const char *words)
{
	struct incident *incident = &flight->incident;
	uint64_t now_ns = clock_ns(), nr_limited;
	bool extends = incident->is_on && extend(flight, now_ns), begins = !incident->is_on && begin(flight, now_ns);

	if (begins || extends)
		incident_note(incident, trigger, words);
	nr_limited = count(flight, begins, extends, incident->nr_notes ? incident->notes[incident->nr_notes - 1] : "");
	if (begins)
		say_begin(flight, trigger, words);
	else if (extends)
		output_say("incident: %s%s%s: it goes on for longer", trigger, *words ? ": " : "", words);
	else if (is_told_at(nr_limited, &flight->told_limited))
		output_say("%s%s%s: limited, nothing more is stored for it; there are %d incidents an hour at most, each as long as the "
			   "recorder's time; so far: %" PRIu64,
			   trigger, *words ? ": " : "", words, MAX_AN_HOUR, nr_limited);
}

static void fire_kind(struct flight *flight, enum trigger_kind kind, const char *words)
{
	const struct triggers *triggers = flight->options.triggers;

	for (uint32_t i = 0; i < triggers->nr; i++) {
		if (triggers->list[i].kind == kind) {
			fire(flight, triggers->list[i].text, words);
			return;
		}
	}
}

static void fire_pending(struct flight *flight)
{
	struct fired fired[MAX_FIRED];
	uint32_t nr;

	pthread_mutex_lock(&flight->lock);
	nr = flight->nr_fired;
	memcpy(fired, flight->fired, sizeof(fired));
	flight->nr_fired = 0;
	pthread_mutex_unlock(&flight->lock);
	for (uint32_t i = 0; i < nr; i++)
		fire_kind(flight, fired[i].kind, fired[i].words);
	if (triggers_have(flight->options.triggers, TRIGGER_SIGNAL) && signals_take_user())
		fire_kind(flight, TRIGGER_SIGNAL, "SIGUSR2");
}

static void tell_of(struct flight *flight, enum trigger_kind kind, const char *words)
{
	pthread_mutex_lock(&flight->lock);
	if (flight->nr_fired < MAX_FIRED) {
		flight->fired[flight->nr_fired].kind = kind;
		snprintf(flight->fired[flight->nr_fired++].words, WORDS_BYTES, "%s", words);
	} else {
		flight->numbers.nr_limited++;
	}
	flight->has_new = true;
	pthread_cond_signal(&flight->has_changed);
	pthread_mutex_unlock(&flight->lock);
}

/* Once a second. */
static void look(struct flight *flight)
{
	const struct triggers *triggers = flight->options.triggers;
	uint64_t nr_unread = flight->nr_unread_before;
	char words[WORDS_BYTES];
	double value;

	for (uint32_t i = 0; i < triggers->nr; i++) {
		struct condition *condition = flight->conditions[i];

		if (!condition)
			continue;
		if (condition_look(condition, &value)) {
			snprintf(words, sizeof(words), "%.4g %s", value, trigger_unit(triggers->list[i].kind));
			fire(flight, triggers->list[i].text, words);
		}
		nr_unread += condition_nr_unread(condition);
	}
	if (triggers_have(triggers, TRIGGER_OOM) && oom_watch_look(&flight->oom_watch, words, sizeof(words)))
		fire_kind(flight, TRIGGER_OOM, words);
	nr_unread += flight->oom_watch.nr_unread;
	pthread_mutex_lock(&flight->lock);
	flight->numbers.nr_unread = nr_unread;
	pthread_mutex_unlock(&flight->lock);
}

/* --- the thread ----------------------------------------------------------------------------------------------------------------------- */

/* Waits until then, or for something new. False: it is over. */
static bool wait_for_work(struct flight *flight, uint64_t until_ns)
{
	bool goes_on;

	pthread_mutex_lock(&flight->lock);
	while (!flight->is_ending && !flight->has_new && clock_ns() < until_ns)
		timed_cond_wait(&flight->has_changed, &flight->lock, until_ns);
	flight->has_new = false;
	goes_on = !flight->is_ending;
	pthread_mutex_unlock(&flight->lock);
	return goes_on;
}

/* Before, an incident would have no windows. */
static bool is_sampling(struct flight *flight)
{
	bool answer;

	pthread_mutex_lock(&flight->lock);
	answer = flight->is_sampling;
	pthread_mutex_unlock(&flight->lock);
	return answer;
}

static void *run(void *arg)
{
	struct flight *flight = arg;
	uint64_t next_ns = clock_ns() + NS_PER_S;

	while (wait_for_work(flight, next_ns)) {
		bool is_due = clock_ns() >= next_ns;

		if (is_due)
			next_ns = clock_ns() > next_ns + NS_PER_S ? clock_ns() + NS_PER_S : next_ns + NS_PER_S;
		if (is_due && is_sampling(flight))
			look(flight);
		if (is_sampling(flight))
			fire_pending(flight);
		store_windows(flight);
	}
	if (is_sampling(flight))
		fire_pending(flight);
	store_windows(flight);
	return NULL;
}

static void free_conditions(struct flight *flight)
{
	for (uint32_t i = 0; i < TRIGGER_MAX; i++) {
		if (flight->conditions[i])
			flight->nr_unread_before += condition_nr_unread(flight->conditions[i]);
		condition_free(MOVE(flight->conditions[i]));
	}
	flight->nr_unread_before += flight->oom_watch.nr_unread;
	flight->oom_watch.nr_unread = 0;
	oom_watch_done(&flight->oom_watch);
}

static int make_conditions(struct flight *flight, const struct triggers *triggers, struct diag *diag)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < triggers->nr; i++) {
		if (triggers->list[i].over_s)
			err = condition_new(&triggers->list[i], diag, &flight->conditions[i]);
	}
	if (!err && triggers_have(triggers, TRIGGER_OOM))
		err = oom_watch_init(&flight->oom_watch, diag);
	if (err)
		free_conditions(flight);
	return err;
}

static void note_crash(void *arg, const char *words)
{
	tell_of(arg, TRIGGER_CRASH, words);
}

static void pass_warnings(void *arg, struct sonde_session *session)
{
	const struct flight_options *options = &((struct flight *)arg)->options;

	options->warned(options->arg, session);
}

static int start_crash_watch(struct flight *flight, struct diag *diag)
{
	const struct flight_options *options = &flight->options;
	const struct crash_watch_options of_watch = { .command_line = options->command_line,
						      .runtimes = options->runtimes,
						      .store = options->store,
						      .store_lock = options->store_lock,
						      .crashed = note_crash,
						      .warned = pass_warnings,
						      .arg = flight };

	return triggers_have(options->triggers, TRIGGER_CRASH) ? crash_watch_start(&of_watch, diag, &flight->crash_watch) : 0;
}

static int start_thread(struct flight *flight, struct diag *diag)
{
	HOLD_SIGNALS();
	int err = pthread_create(&flight->thread, NULL, run, flight);

	flight->is_started = !err;
	return err ? diag_errno(diag, err, "no thread for the recorder: %s", strerror(err)) : 0;
}

int flight_start(struct flight *flight, const struct flight_options *options, struct diag *diag)
{
	int err = make_conditions(flight, options->triggers, diag);

	if (err)
		return err;
	pthread_mutex_lock(&flight->lock);
	flight->options = *options;
	flight->is_ending = flight->is_sampling = false;
	flight->ring.span_ns = options->before_ns;
	flight->ring.max_bytes = options->max_bytes;
	flight->numbers.is_on = options->before_ns;
	if (!options->before_ns)
		ring_done(&flight->ring);
	pthread_mutex_unlock(&flight->lock);
	if (!options->before_ns)
		end_early(flight);
	if (triggers_have(options->triggers, TRIGGER_SIGNAL))
		signals_keep_user();
	return options->before_ns ? start_crash_watch(flight, diag) ?: start_thread(flight, diag) : 0;
}

void flight_sampling(struct flight *flight)
{
	pthread_mutex_lock(&flight->lock);
	flight->is_sampling = true;
	pthread_mutex_unlock(&flight->lock);
}

void flight_stop(struct flight *flight, bool is_last)
{
	crash_watch_end(MOVE(flight->crash_watch)); /* its last crash may be one for the thread */
	if (flight->is_started) {
		pthread_mutex_lock(&flight->lock);
		flight->is_ending = true;
		pthread_cond_signal(&flight->has_changed);
		pthread_mutex_unlock(&flight->lock);
		pthread_join(flight->thread, NULL);
		flight->is_started = false;
	}
	free_conditions(flight);
	if (is_last)
		end_early(flight);
}

void flight_numbers(struct flight *flight, struct flight_numbers *ret_numbers)
{
	pthread_mutex_lock(&flight->lock);
	*ret_numbers = flight->numbers;
	ret_numbers->nr_windows = flight->ring.nr;
	ret_numbers->bytes = flight->ring.bytes;
	ret_numbers->duration_ns = flight->ring.duration_ns;
	pthread_mutex_unlock(&flight->lock);
}
