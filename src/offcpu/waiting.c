// SPDX-License-Identifier: Apache-2.0
/* The measurement of how long threads are off the CPU and, with ticks added, of all of their time: the scheduler's programs from their
 * start to the sums of each window, and what they send besides the stacks. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sized.h"
#include "collect/sched_programs.h"
#include "engine/overhead.h"
#include "engine/ticks.h"
#include "model/histogram.h"
#include "offcpu/event_log.h"
#include "offcpu/offcpu.h"
#include "offcpu/wait_samples.h"
#include "offcpu/wall.h"
#include "stacks/wait_sums.h"

#define SUMS_PER_STACK 4 /* threads that wait with the same stack */
#define SUMS_BYTES (128u << 20) /* beyond that the sums stay in the programs' maps, and those that find no room there are counted */
#define EVENT "sched:sched_switch" /* perf's name */

struct waiting {
	struct measurement base;
	struct sonde_wait_options options; /* its texts are not kept */
	struct ticks ticks;        /* of wall only */
	struct sched_programs *programs;
	struct wait_sums *sums;    /* of the open window */
	struct wait_sums *cut;     /* of a window that was cut and is not closed yet; NULL: there is none */
	struct event_log *events; /* NULL: not requested */
	uint64_t begin_ns, border_ns; /* start of the window that is closed next, and its end */
	struct overhead overhead;
};

static struct waiting *waiting_of(struct measurement *measurement)
{
	return (struct waiting *)measurement;
}

static const struct waiting *const_waiting_of(const struct measurement *measurement)
{
	return (const struct waiting *)measurement;
}

/* --- creation ------------------------------------------------------------------------------------------------------------------------- */

static int check(const struct sonde_wait_options *o, bool is_wall, struct diag *diag)
{
	if (o->user_threads_only && o->kernel_threads_only)
		return diag_errno(diag, EINVAL, "user threads only and kernel threads only exclude each other");
	if (o->max_ns && o->max_ns < o->min_ns)
		return diag_errno(diag, EINVAL, "no wait is at least %" PRIu64 " ns and at most %" PRIu64 " ns long", o->min_ns, o->max_ns);
	if (o->max_overhead_percent > 100 || (o->max_overhead_percent && is_wall))
		return diag_errno(diag, EINVAL, "a limit of the overhead is 1 to 100 percent, and for waits alone");
	if (o->state < SONDE_STATE_PREEMPTED || o->state > UINT16_MAX)
		return diag_errno(diag, EINVAL, "there is no such state of a thread: %" PRId32, o->state);
	return 0;
}

static void fill(const struct sonde_wait_options *o, bool is_wall, struct sampler_options *sampling)
{
	struct sonde_config *config = &sampling->config;

	config->min_off_ns = o->min_ns;
	config->max_off_ns = o->max_ns;
	config->state = o->state == SONDE_STATE_PREEMPTED ? SONDE_WAIT_PREEMPTED : o->state ? o->state : -1;
	config->user_threads_only = o->user_threads_only;
	config->kernel_threads_only = o->kernel_threads_only;
	config->wake = o->wake;
	config->histograms = o->histograms;
	config->wall = is_wall;
	config->events = o->events != NULL;
	config->kernel_stacks = 1; /* they decide the kind of wait, shown or not */
	config->more_levels = 1; /* a tick may interrupt the program of a switch, a switch the iterator at the start */
}

static int init_as(struct measurement *measurement, bool is_wall, struct sampler_options *sampling, struct diag *diag)
{
	struct waiting *waiting = waiting_of(measurement);
	const struct sonde_session_options *common = measurement->parts.options;
	struct sonde_wait_options *o = &waiting->options;
	int err = sized_options(o, sizeof(*o), common->waits, diag) ?: check(o, is_wall, diag);

	if (!err && common->every_ns && o->events)
		err =
		    diag_errno(diag, EINVAL, "the file of events is one for the whole recording: --events and --every exclude each other");
	if (err)
		return err;
	fill(o, is_wall, sampling);
	waiting->overhead = (struct overhead){ .max_percent = o->max_overhead_percent,
					       .nr_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
					       .min_ns = o->min_ns };
	waiting->sums = wait_sums_new();
	measurement->needs_initial_stacks = true;
	measurement->has_histograms = o->histograms;
	return waiting->sums ? 0 : -ENOMEM;
}

static int init(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	return init_as(measurement, false, sampling, diag);
}

static int init_wall(struct measurement *measurement, struct sampler_options *sampling, struct diag *diag)
{
	return init_as(measurement, true, sampling, diag)
		   ?: ticks_init(&waiting_of(measurement)->ticks, &measurement->parts, sampling, diag);
}

static void done(struct measurement *measurement)
{
	struct waiting *waiting = waiting_of(measurement);

	sched_programs_free(waiting->programs);
	wait_sums_free(waiting->sums);
	wait_sums_free(waiting->cut);
	event_log_free(waiting->events);
}

static int load(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	struct waiting *waiting = waiting_of(measurement);
	const struct sched_options sched = { .max_sums = measurement->parts.options->stack_storage * SUMS_PER_STACK,
					     .tells_cost = waiting->overhead.max_percent != 0 };
	int err = waiting->options.events ? event_log_new(waiting->options.events, diag, &waiting->events) : 0;

	waiting->options.events = NULL;
	return err ?: sched_programs_new(measurement->parts.engine->sampler, &sched, diag, &waiting->programs);
}

static int load_wall(struct measurement *measurement, const struct targets *targets, uint32_t command_tgid, struct diag *diag)
{
	return ticks_open(&waiting_of(measurement)->ticks, &measurement->parts, diag) ?: load(measurement, targets, command_tgid, diag);
}

static int start(struct measurement *measurement, struct diag *diag, uint64_t *ret_start_ns)
{
	struct waiting *waiting = waiting_of(measurement);
	int err = sched_programs_start(waiting->programs, diag, ret_start_ns);

	if (err)
		return err;
	waiting->begin_ns = waiting->overhead.looked_ns = *ret_start_ns;
	if (waiting->events)
		event_log_begin(waiting->events, *ret_start_ns, measurement->parts.account->command_line);
	return 0;
}

/* --- sums ----------------------------------------------------------------------------------------------------------------------------- */

/* The sums of the window that a key belongs to. */
static struct wait_sums *sums_of(const struct waiting *waiting, const struct sonde_wait_key *key)
{
	/* before the cut there is only one window */
	return waiting->cut && key->window != sched_programs_window(waiting->programs) ? waiting->cut : waiting->sums;
}

static int take_sum(void *arg, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum)
{
	return wait_sums_add(sums_of(arg, key), key, sum);
}

static int take_slot(void *arg, const struct sonde_wait_slot *slot, uint64_t nr_waits)
{
	return wait_sums_add_slot(sums_of(arg, &slot->key), slot, nr_waits);
}

/* Adds an empty sum to the next window for a wait that goes on, under the key with which it may end there. So what the key refers to is
 * kept. */
static int begin_next(const struct waiting *waiting, const struct sonde_wait_piece *piece)
{
	static const struct sonde_wait_sum nothing_yet = { 0 };
	struct sonde_wait_key key = piece->key;

	key.waker = piece->waker;
	return wait_sums_add(waiting->sums, &key, &nothing_yet);
}

static int take_piece(void *arg, const struct sonde_wait_piece *piece)
{
	const struct waiting *waiting = arg;
	struct wait_sums *sums = waiting->cut ?: waiting->sums;
	struct sonde_wait_slot slot = { .key = piece->key, .slot = histogram_slot(HISTOGRAM_LOG2, piece->sum.whole_ns / NS_PER_US) };
	int err = piece->sum.off_ns || piece->sum.nr_waits ? wait_sums_add(sums, &piece->key, &piece->sum) : 0;

	if (!err && waiting->options.histograms && piece->key.what == SONDE_WAIT_OFF && piece->sum.nr_waits)
		err = wait_sums_add_slot(sums, &slot, piece->sum.nr_waits);
	return !err && piece->goes_on ? begin_next(waiting, piece) : err;
}

static struct sched_sink sink_of(struct waiting *waiting)
{
	return (struct sched_sink){ .sum = take_sum, .slot = take_slot, .piece = take_piece, .arg = waiting };
}

static int step(struct measurement *measurement, uint64_t now_ns, struct diag *diag)
{
	struct waiting *waiting = waiting_of(measurement);
	const struct sched_sink sink = sink_of(waiting);
	int err = wait_sums_bytes(waiting->sums) < SUMS_BYTES && sched_programs_fill_up(waiting->programs)
		      ? sched_programs_take(waiting->programs, &sink)
		      : 0;

	if (err || !waiting->overhead.max_percent || !overhead_look(&waiting->overhead, now_ns, sched_programs_cost_ns(waiting->programs)))
		return err;
	return sched_programs_set_min(waiting->programs, waiting->overhead.min_ns);
}

static size_t window_bytes(const struct measurement *measurement)
{
	return wait_sums_bytes(const_waiting_of(measurement)->sums);
}

static bool set_border(struct measurement *measurement, uint64_t *border_ns)
{
	struct waiting *waiting = waiting_of(measurement);
	bool is_in_time = sched_programs_set_border(waiting->programs, border_ns);

	waiting->border_ns = *border_ns;
	return is_in_time;
}

/* The processes that waited are read, if they were not. */
static int meet(const struct waiting *waiting)
{
	struct identities *identities = waiting->base.parts.engine->identities;
	int err = 0;

	for (uint32_t i = 0; identities && !err && i < wait_sums_nr(waiting->cut); i++)
		err = identities_meet(identities, wait_sums_at(waiting->cut, i)->key.tgid);
	return err;
}

static int cut(struct measurement *measurement, struct diag *diag)
{
	struct waiting *waiting = waiting_of(measurement);
	const struct sched_sink sink = sink_of(waiting);
	struct wait_sums *sums = wait_sums_new();
	int err;

	if (!sums)
		return -ENOMEM;
	waiting->cut = waiting->sums;
	waiting->sums = sums;
	err = sched_programs_cut(waiting->programs, &sink, diag);
	return err ? err : meet(waiting);
}

static int stop(struct measurement *measurement, struct diag *diag, uint64_t *ret_end_ns)
{
	struct waiting *waiting = waiting_of(measurement);
	const struct sched_sink sink = sink_of(waiting);
	int err = sched_programs_stop(waiting->programs, &sink, diag, ret_end_ns);

	waiting->cut = waiting->sums;
	waiting->sums = wait_sums_new();
	return err ? err : waiting->sums ? meet(waiting) : -ENOMEM;
}

/* Those of one program: a sum may be of the time before and after an exec. */
static void add_labels(const struct waiting *waiting, struct wait_entry *entry)
{
	const struct identities *identities = waiting->base.parts.engine->identities;

	if (identities && !entry->labels)
		entry->labels = process_labels_ref(identities_since(identities, entry->key.tgid, waiting->begin_ns));
}

/* The first wait of a thread that was off the CPU at the start has a stack that was read afterwards. The time when the wait ended, or until
 * when it went on, tells whether that is the right one. */
static void choose_initial_stack(const struct waiting *waiting, struct wait_entry *entry)
{
	if (entry->key.user_state == SONDE_STACK_DEFERRED)
		entry->user_stack = initial_stacks_stack(waiting->base.parts.engine->initial_stacks, entry->key.user_stack,
							 waiting->begin_ns + entry->sum.off_ns);
}

/* A wait that goes on may refer to either stack later. */
static int keep_on(const struct waiting *waiting, const struct wait_entry *entry, const struct process_table *processes)
{
	struct stack_ids ids = wait_ids(&entry->key);
	int err = stack_recorder_keep_on(waiting->base.parts.engine->recorder, &ids, entry->key.waker, processes);

	if (err || entry->key.user_state != SONDE_STACK_DEFERRED)
		return err;
	ids.user_stack = initial_stacks_id_of_registers(entry->key.user_stack);
	return stack_recorder_keep_on(waiting->base.parts.engine->recorder, &ids, 0, processes);
}

static int close_window(struct measurement *measurement, const struct process_table *processes, struct window *window)
{
	struct waiting *waiting = waiting_of(measurement);
	struct wait_sums *cut = waiting->cut;
	int err = 0;

	for (uint32_t i = 0; !err && i < wait_sums_nr(cut); i++) {
		struct wait_entry *entry = wait_sums_at(cut, i);
		struct stack_ids ids = wait_ids(&entry->key);

		choose_initial_stack(waiting, entry);
		add_labels(waiting, entry);
		ids.user_stack = entry->user_stack;
		err = stack_recorder_keep(waiting->base.parts.engine->recorder, &ids, entry->key.waker, processes);
	}
	for (uint32_t i = 0; !err && i < wait_sums_nr(waiting->sums); i++)
		err = keep_on(waiting, wait_sums_at(waiting->sums, i), processes);
	waiting->begin_ns = waiting->border_ns;
	window->sums = MOVE(waiting->cut);
	return err;
}

/* --- records -------------------------------------------------------------------------------------------------------------------------- */

static int take_deferred(void *arg, const struct sonde_deferred_record *record)
{
	return stack_recorder_record(arg, record);
}

static int take_record(struct measurement *measurement, const void *record)
{
	const struct waiting *waiting = waiting_of(measurement);
	const struct engine *engine = measurement->parts.engine;
	uint32_t type = *(const uint32_t *)record;
	int err = 0;

	if (type == SONDE_RECORD_INITIAL_STACK)
		return initial_stacks_take(engine->initial_stacks, record, take_deferred, engine->recorder);
	if (type == SONDE_RECORD_WAKER)
		err = stack_recorder_record(engine->recorder, record);
	return err || !waiting->events ? err : event_log_record(waiting->events, record);
}

/* --- the profile ---------------------------------------------------------------------------------------------------------------------- */

static uint64_t events_lost(const struct waiting *waiting)
{
	struct sonde_wait_counters counters;

	sched_programs_counters(waiting->programs, &counters);
	return counters.events_lost;
}

/* A failure affects only the file, not the report. */
static void write_events(const struct waiting *waiting, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	const struct event_end end = { .end_ns = window->end_ns,
				       .unix_offset_ns = window->unix_offset_ns,
				       .nr_lost = events_lost(waiting) };
	struct diag diag = { 0 };

	window->events_err = event_log_end(waiting->events, builder, profile, &end, &diag);
	if (window->events_err)
		account_note(profile_account(profile), "the events were not written: %s",
			     diag.text[0] ? diag.text : strerror(-window->events_err));
}

/* True if the wait has begun, but has nothing in this window yet. */
static bool is_empty(const struct wait_entry *entry)
{
	return !entry->sum.off_ns && !entry->sum.nr_waits;
}

static int make_profile(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	const struct waiting *waiting = waiting_of(measurement);
	const struct wait_samples_options kept = { .show_count = waiting->options.count_waits,
						   .kernel_stacks = !measurement->parts.options->user_only,
						   .wake = waiting->options.wake,
						   .histograms = waiting->options.histograms,
						   .labels = window->has_process_labels };
	CLEANUP(wait_samples_freep) struct wait_samples *samples = wait_samples_new(&kept, profile);
	const struct wait_sums *sums = window->sums;
	int err = samples ? 0 : -ENOMEM;

	if (!err && waiting->events)
		write_events(waiting, window, builder, profile);
	for (uint32_t i = 0; !err && i < wait_sums_nr(sums); i++) {
		const struct wait_entry *entry = wait_sums_at(sums, i);

		err = entry->key.what != SONDE_WAIT_OFF || is_empty(entry) ? 0 : wait_samples_sum(samples, builder, entry);
	}
	for (uint32_t i = 0; !err && i < wait_sums_nr_slots(sums); i++)
		err = wait_samples_slot(samples, wait_sums_slot_at(sums, i));
	return err;
}

static int make_wall(struct measurement *measurement, struct window *window, struct stack_builder *builder, struct profile *profile)
{
	CLEANUP(wall_freep) struct wall *wall = wall_new(!measurement->parts.options->user_only, window->has_process_labels, profile);
	const struct waiting *waiting = waiting_of(measurement);
	const struct wait_sums *sums = window->sums;
	int err = wall ? 0 : -ENOMEM;

	if (!err && waiting->events)
		write_events(waiting, window, builder, profile);
	for (uint32_t i = 0; !err && i < wait_sums_nr(sums); i++)
		err = is_empty(wait_sums_at(sums, i)) ? 0 : wall_sum(wall, builder, wait_sums_at(sums, i));
	return err ? err : wall_finish(wall, builder, window->samples);
}

/* --- numbers -------------------------------------------------------------------------------------------------------------------------- */

static uint64_t nr_waits(const struct measurement *measurement)
{
	struct sonde_wait_counters counters;

	sched_programs_counters(const_waiting_of(measurement)->programs, &counters);
	return counters.waits;
}

static uint64_t nr_of_wall(const struct measurement *measurement)
{
	return nr_waits(measurement) + stack_recorder_nr_samples(measurement->parts.engine->recorder);
}

static void note_overhead(const struct overhead *overhead, struct account *account)
{
	if (overhead->nr_raised)
		account_note(account,
			     "the programs took up to %.1f %% of the machine's time, more than --max-overhead %" PRIu32
			     ": in the end waits shorter than %" PRIu64 " us were left out",
			     overhead->worst_percent, overhead->max_percent, overhead->min_ns / 1000);
	if (overhead->is_at_end)
		account_note(account,
			     "the programs still cost more than --max-overhead %" PRIu32
			     ": the rest is the price of seeing each thread switch",
			     overhead->max_percent);
}

static void account_waits(const struct waiting *waiting, struct account *account)
{
	const struct initial_stacks *initial_stacks = waiting->base.parts.engine->initial_stacks;
	struct sonde_wait_counters counters;

	sched_programs_counters(waiting->programs, &counters);
	account->has_waits = true;
#define X(field) account->waits.field = counters.field;
	ACCOUNT_WAIT_LIST(X)
#undef X
	account->bpf_map_bytes += sched_programs_map_bytes(waiting->programs);
	note_overhead(&waiting->overhead, account);
	if (initial_stacks_nr_late(initial_stacks))
		account_note(
		    account,
		    "%" PRIu32 " of %" PRIu32
		    " threads that waited at the start ran on before their stacks could be read: only the leaf of that wait is known",
		    initial_stacks_nr_late(initial_stacks), initial_stacks_nr(initial_stacks));
}

static void account(const struct measurement *measurement, struct account *account)
{
	snprintf(account->event, sizeof(account->event), "%s", EVENT);
	snprintf(account->event_unit, sizeof(account->event_unit), "count");
	account->period = 1;
	account->nr_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	account_waits(const_waiting_of(measurement), account);
}

static int set_rate_of_wall(struct measurement *measurement, uint64_t freq_hz)
{
	return ticks_set_rate(&waiting_of(measurement)->ticks, measurement->parts.engine->sampler, freq_hz);
}

static void account_wall(const struct measurement *measurement, struct account *account)
{
	ticks_account(&const_waiting_of(measurement)->ticks, measurement->parts.engine->sampler, account);
	account_waits(const_waiting_of(measurement), account);
}

const struct measurement_type waiting_measurement = {
	.bytes = sizeof(struct waiting),
	.init = init,
	.done = done,
	.load = load,
	.start = start,
	.record = take_record,
	.step = step,
	.stop = stop,
	.set_border = set_border,
	.cut = cut,
	.close = close_window,
	.window_bytes = window_bytes,
	.profile = make_profile,
	.has_labels = true,
	.nr = nr_waits,
	.account = account,
};

const struct measurement_type wall_measurement = {
	.bytes = sizeof(struct waiting),
	.init = init_wall,
	.done = done,
	.load = load_wall,
	.start = start,
	.record = take_record,
	.step = step,
	.stop = stop,
	.set_border = set_border,
	.cut = cut,
	.close = close_window,
	.window_bytes = window_bytes,
	.set_rate = set_rate_of_wall,
	.profile = make_wall,
	.has_labels = true,
	.nr = nr_of_wall,
	.account = account_wall,
};
