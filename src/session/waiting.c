// SPDX-License-Identifier: Apache-2.0
#include "session/waiting.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/histogram.h"
#include "session/overhead.h"

#define SUMS_PER_STACK 4 /* threads that wait with the same stack */
#define SUMS_BYTES (128u << 20) /* then the programs' sums stay where they are, and what finds no room there is counted */

struct waiting {
	struct sched_programs *programs;
	struct wait_sums *sums;    /* of the open window */
	struct wait_sums *cut;     /* of the one that was cut and is not closed yet; NULL: there is none */
	struct waiting_parts parts;
	struct event_book *events; /* NULL: not asked for */
	uint64_t begin_ns, border_ns; /* of the window that is closed next, and its end */
	bool histograms;
	struct overhead overhead;
};

int waiting_new(const struct sonde_profile_options *options, const struct waiting_parts *parts, struct diag *diag, struct waiting **ret_waiting)
{
	const struct sched_options sched = { .max_sums = options->stack_storage * SUMS_PER_STACK, .tells_cost = options->max_overhead_percent != 0 };
	struct waiting *waiting = calloc(1, sizeof(*waiting));
	int err;

	if (!waiting)
		return -ENOMEM;
	waiting->overhead = (struct overhead){ .max_percent = options->max_overhead_percent, .nr_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), .min_ns = options->min_ns };
	waiting->parts = *parts;
	waiting->histograms = options->histograms;
	waiting->sums = wait_sums_new();
	err = waiting->sums ? 0 : -ENOMEM;
	if (!err && options->events)
		err = event_book_new(options->events, diag, &waiting->events);
	if (!err)
		err = sched_programs_new(parts->sampler, &sched, diag, &waiting->programs);
	if (err)
		waiting_free(waiting);
	else
		*ret_waiting = waiting;
	return err;
}

void waiting_free(struct waiting *waiting)
{
	if (!waiting)
		return;
	sched_programs_free(waiting->programs);
	wait_sums_free(waiting->sums);
	wait_sums_free(waiting->cut);
	event_book_free(waiting->events);
	free(waiting);
}

int waiting_start(struct waiting *waiting, const char *command_line, struct diag *diag, uint64_t *ret_start_ns)
{
	int err = sched_programs_start(waiting->programs, diag, ret_start_ns);

	if (err)
		return err;
	waiting->begin_ns = waiting->overhead.looked_ns = *ret_start_ns;
	if (waiting->events)
		event_book_begin(waiting->events, *ret_start_ns, command_line);
	return 0;
}

/* --- sums -------------------------------------------------------------------------------------------------------------------------------- */

/* Those of the window that a key is of. */
static struct wait_sums *sums_of(const struct waiting *waiting, const struct sonde_wait_key *key)
{
	return waiting->cut && key->window != sched_programs_window(waiting->programs) ? waiting->cut : waiting->sums; /* before the cut there is one window alone */
}

static int take_sum(void *arg, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum)
{
	return wait_sums_add(sums_of(arg, key), key, sum);
}

static int take_slot(void *arg, const struct sonde_wait_slot *slot, uint64_t nr_waits)
{
	return wait_sums_add_slot(sums_of(arg, &slot->key), slot, nr_waits);
}

/* What the next window has of a wait that goes on: the key under which it may end there, so that what that names is kept. */
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

	if (!err && waiting->histograms && piece->key.what == SONDE_WAIT_OFF && piece->sum.nr_waits)
		err = wait_sums_add_slot(sums, &slot, piece->sum.nr_waits);
	return !err && piece->goes_on ? begin_next(waiting, piece) : err;
}

static struct sched_sink sink_of(struct waiting *waiting)
{
	return (struct sched_sink){ .sum = take_sum, .slot = take_slot, .piece = take_piece, .arg = waiting };
}

int waiting_step(struct waiting *waiting, uint64_t now_ns)
{
	const struct sched_sink sink = sink_of(waiting);
	int err = waiting_bytes(waiting) < SUMS_BYTES && sched_programs_fill_up(waiting->programs) ? sched_programs_take(waiting->programs, &sink) : 0;

	if (err || !waiting->overhead.max_percent || !overhead_look(&waiting->overhead, now_ns, sched_programs_cost_ns(waiting->programs)))
		return err;
	return sched_programs_set_min(waiting->programs, waiting->overhead.min_ns);
}

size_t waiting_bytes(const struct waiting *waiting)
{
	return wait_sums_bytes(waiting->sums);
}

bool waiting_tell_border(struct waiting *waiting, uint64_t *border_ns)
{
	bool is_in_time = sched_programs_tell_border(waiting->programs, border_ns);

	waiting->border_ns = *border_ns;
	return is_in_time;
}

int waiting_cut(struct waiting *waiting, struct diag *diag)
{
	const struct sched_sink sink = sink_of(waiting);
	struct wait_sums *sums = wait_sums_new();

	if (!sums)
		return -ENOMEM;
	waiting->cut = waiting->sums;
	waiting->sums = sums;
	return sched_programs_cut(waiting->programs, &sink, diag);
}

int waiting_stop(struct waiting *waiting, struct diag *diag, uint64_t *ret_end_ns)
{
	const struct sched_sink sink = sink_of(waiting);
	int err = sched_programs_stop(waiting->programs, &sink, diag, ret_end_ns);

	waiting->cut = waiting->sums;
	waiting->sums = wait_sums_new();
	return err ? err : waiting->sums ? 0 : -ENOMEM;
}

/* The first wait of a thread that was off the CPU at the start has a stack that was read afterwards: when the wait ended, or went on, tells whether it is the right one. */
static void choose_seed(const struct waiting *waiting, struct wait_entry *entry)
{
	if (entry->key.user_side == SONDE_SIDE_RAW)
		entry->user_stack = seeds_stack(waiting->parts.seeds, entry->key.user_stack, waiting->begin_ns + entry->sum.off_ns);
}

/* What is made of a wait that goes on may be named by either. */
static int keep_on(const struct waiting *waiting, const struct wait_entry *entry, const struct process_table *processes)
{
	struct stack_sides sides = wait_sides(&entry->key);
	int err = stack_book_keep_on(waiting->parts.book, &sides, entry->key.waker, processes);

	if (err || entry->key.user_side != SONDE_SIDE_RAW)
		return err;
	sides.user_stack = seeds_id_of_registers(entry->key.user_stack);
	return stack_book_keep_on(waiting->parts.book, &sides, 0, processes);
}

int waiting_close(struct waiting *waiting, const struct process_table *processes, struct wait_sums **ret_sums)
{
	struct wait_sums *cut = waiting->cut;
	int err = 0;

	for (uint32_t i = 0; !err && i < wait_sums_nr(cut); i++) {
		struct wait_entry *entry = wait_sums_at(cut, i);
		struct stack_sides sides = wait_sides(&entry->key);

		choose_seed(waiting, entry);
		sides.user_stack = entry->user_stack;
		err = stack_book_keep(waiting->parts.book, &sides, entry->key.waker, processes);
	}
	for (uint32_t i = 0; !err && i < wait_sums_nr(waiting->sums); i++)
		err = keep_on(waiting, wait_sums_at(waiting->sums, i), processes);
	waiting->begin_ns = waiting->border_ns;
	*ret_sums = MOVE(waiting->cut);
	return err;
}

/* --- records ----------------------------------------------------------------------------------------------------------------------------- */

bool waiting_is_for(uint32_t record_type)
{
	return record_type >= SONDE_RECORD_WAKER && record_type <= SONDE_RECORD_WAKEUP;
}

static int take_raw(void *arg, const struct sonde_raw_record *record)
{
	return stack_book_record(arg, record);
}

int waiting_record(struct waiting *waiting, const void *record)
{
	uint32_t type = *(const uint32_t *)record;
	int err = 0;

	if (type == SONDE_RECORD_SEED)
		return seeds_take(waiting->parts.seeds, record, take_raw, waiting->parts.book);
	if (type == SONDE_RECORD_WAKER)
		err = stack_book_record(waiting->parts.book, record);
	return err || !waiting->events ? err : event_book_record(waiting->events, record);
}

/* --- numbers ----------------------------------------------------------------------------------------------------------------------------- */

uint64_t waiting_nr_waits(const struct waiting *waiting)
{
	struct sonde_wait_counters counters;

	sched_programs_counters(waiting->programs, &counters);
	return counters.waits;
}

struct event_book *waiting_events(const struct waiting *waiting)
{
	return waiting->events;
}

uint64_t waiting_events_lost(const struct waiting *waiting)
{
	struct sonde_wait_counters counters;

	sched_programs_counters(waiting->programs, &counters);
	return counters.events_lost;
}

static void note_overhead(const struct overhead *overhead, struct account *account)
{
	if (overhead->nr_raised)
		account_note(account, "the programs took up to %.1f %% of the machine's time, more than --max-overhead %" PRIu32 ": in the end waits shorter than %" PRIu64 " us were left out",
			     overhead->worst_percent, overhead->max_percent, overhead->min_ns / 1000);
	if (overhead->is_at_end)
		account_note(account, "the programs still cost more than --max-overhead %" PRIu32 ": what is left is the price of seeing each switch of threads",
			     overhead->max_percent);
}

void waiting_account(const struct waiting *waiting, struct account *account)
{
	struct sonde_wait_counters counters;

	sched_programs_counters(waiting->programs, &counters);
	account->has_waits = true;
#define X(field) account->waits.field = counters.field;
	ACCOUNT_WAIT_LIST(X)
#undef X
	account->bpf_map_bytes += sched_programs_map_bytes(waiting->programs);
	note_overhead(&waiting->overhead, account);
	if (seeds_nr_late(waiting->parts.seeds))
		account_note(account, "%" PRIu32 " of %" PRIu32 " threads that waited at the start ran on before their stacks could be read: of that wait only the leaf is known",
			     seeds_nr_late(waiting->parts.seeds), seeds_nr(waiting->parts.seeds));
}
