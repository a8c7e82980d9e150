// SPDX-License-Identifier: Apache-2.0
#include "session/waiting.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "session/event_book.h"
#include "session/overhead.h"
#include "session/wait_book.h"
#include "session/wait_sums.h"
#include "session/wall.h"

#define SUMS_PER_STACK 4 /* threads that wait with the same stack */

struct waiting {
	struct sched_programs *programs;
	struct wait_sums *sums;
	struct waiting_parts parts;
	struct wait_book *book;    /* one of the two */
	struct wall *wall;
	struct event_book *events; /* NULL: not asked for */
	uint64_t start_ns;
	struct stack_maker *maker; /* while the profile is filled */
	struct overhead overhead;
};

static int make_book(struct waiting *waiting, const struct sonde_profile_options *options)
{
	const struct wait_book_options kept = { .show_count = options->count_waits, .kernel_stacks = !options->user_only, .wake = options->wake,
					      .histograms = options->histograms };

	if (options->question == SONDE_WALL)
		waiting->wall = wall_new(!options->user_only, waiting->parts.profile);
	else
		waiting->book = wait_book_new(&kept, waiting->parts.profile);
	waiting->sums = wait_sums_new();
	return waiting->sums && (waiting->wall || waiting->book) ? 0 : -ENOMEM;
}

int waiting_new(const struct sonde_profile_options *options, const struct waiting_parts *parts, struct diag *diag, struct waiting **ret_waiting)
{
	const struct sched_options sched = { .max_sums = options->stack_storage * SUMS_PER_STACK, .tells_cost = options->max_overhead_percent != 0 };
	struct waiting *waiting = calloc(1, sizeof(*waiting));
	int err;

	if (!waiting)
		return -ENOMEM;
	waiting->overhead = (struct overhead){ .max_percent = options->max_overhead_percent, .nr_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), .min_ns = options->min_ns };
	waiting->parts = *parts;
	err = make_book(waiting, options);
	if (!err && options->events)
		err = event_book_new(options->events, parts->profile, diag, &waiting->events);
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
	wait_book_free(waiting->book);
	wall_free(waiting->wall);
	event_book_free(waiting->events);
	free(waiting);
}

int waiting_start(struct waiting *waiting, struct diag *diag, uint64_t *ret_start_ns)
{
	int err = sched_programs_start(waiting->programs, diag, &waiting->start_ns);

	if (err)
		return err;
	*ret_start_ns = waiting->overhead.looked_ns = waiting->start_ns;
	if (waiting->events)
		event_book_begin(waiting->events, waiting->start_ns);
	return 0;
}

int waiting_stop(struct waiting *waiting, struct diag *diag, uint64_t *ret_end_ns)
{
	return sched_programs_stop(waiting->programs, diag, ret_end_ns);
}

int waiting_step(struct waiting *waiting, uint64_t now_ns)
{
	int err = wait_sums_have_room(waiting->sums) && sched_programs_fill_up(waiting->programs) ? wait_sums_take(waiting->sums, waiting->programs) : 0;

	if (err || !waiting->overhead.max_percent || !overhead_look(&waiting->overhead, now_ns, sched_programs_cost_ns(waiting->programs)))
		return err;
	return sched_programs_set_min(waiting->programs, waiting->overhead.min_ns);
}

bool waiting_has_room(const struct waiting *waiting)
{
	return !waiting->book || wait_book_has_room(waiting->book);
}

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
	if (type == SONDE_RECORD_WAKER && waiting->book)
		err = wait_book_waker(waiting->book, record);
	return err || !waiting->events ? err : event_book_record(waiting->events, record);
}

uint64_t waiting_nr_waits(const struct waiting *waiting)
{
	struct sonde_wait_counters counters;

	sched_programs_counters(waiting->programs, &counters);
	return counters.waits;
}

/* The first wait of a thread that was off the CPU at the start has a stack that was read afterwards: the wait's end tells whether it is the right one. */
static uint64_t user_stack_of(const struct waiting *waiting, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum)
{
	if (key->user_side != SONDE_SIDE_RAW)
		return key->user_stack;
	return seeds_stack(waiting->parts.seeds, key->user_stack, waiting->start_ns + sum->off_ns);
}

static int add_sum(void *arg, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum)
{
	const struct waiting *waiting = arg;
	uint64_t user_stack = user_stack_of(waiting, key, sum);

	if (waiting->wall)
		return wall_sum(waiting->wall, waiting->maker, key, user_stack, sum);
	return key->what == SONDE_WAIT_OFF ? wait_book_sum(waiting->book, waiting->maker, key, user_stack, sum) : 0;
}

static int add_slot(void *arg, const struct sonde_wait_slot *slot, uint64_t nr_waits)
{
	const struct waiting *waiting = arg;

	return waiting->book && slot->key.what == SONDE_WAIT_OFF ? wait_book_slot(waiting->book, slot, nr_waits) : 0;
}

int waiting_profile(struct waiting *waiting, struct stack_maker *maker)
{
	const struct sched_sink sink = { .sum = add_sum, .slot = add_slot, .arg = waiting };
	int err = wait_sums_take(waiting->sums, waiting->programs);

	waiting->maker = maker;
	if (!err)
		err = wait_sums_give(waiting->sums, &sink);
	return err || !waiting->wall ? err : wall_finish(waiting->wall, maker, waiting->parts.book);
}

int waiting_write_events(struct waiting *waiting, struct stack_maker *maker, uint64_t end_ns, uint64_t unix_offset_ns, struct diag *diag)
{
	struct sonde_wait_counters counters;

	if (!waiting->events)
		return 0;
	sched_programs_counters(waiting->programs, &counters);
	return event_book_end(waiting->events, maker, end_ns, unix_offset_ns, counters.events_lost, diag);
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
