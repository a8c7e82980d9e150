// SPDX-License-Identifier: Apache-2.0
#include "offcpu/event_log.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/u64_map.h"
#include "offcpu/wait_stack.h"
#include "stacks/stack_ids.h"

#define MAX_PENDING (1u << 22)  /* events that are not in order yet: 128 MiB */
#define MAX_THREADS (1u << 20)  /* threads beyond that have the number null */
#define MAX_CAUSES (1u << 20)   /* different waits, and different wakers; beyond that as with threads */

/* A thread under one of its names. */
struct thread {
	uint32_t tgid, tid;
	char comm[SONDE_COMM_BYTES]; /* "": not known yet */
};

/* A wait or a waker. */
struct cause {
	struct sonde_wait_key
	    key; /* its stacks; of a wait, its state and system call as well. All else is zero: it is hashed and compared whole */
	uint32_t thread;           /* of a waker */
	bool is_disputed;          /* of a waker: another one has the same hash */
};

struct causes {
	struct cause *list;
	uint32_t nr, max;
	struct u64_map by_hash;
};

struct event_log {
	struct event_file *file;
	struct profile *profile;     /* set at the end */
	struct sched_event *pending; /* events that are not in order yet */
	uint32_t nr_pending, max_pending;
	uint64_t start_ns, oldest_ns, newest_ns; /* oldest and newest: of the pending events */
	struct thread *threads;
	uint32_t nr_threads, max_threads;
	struct u64_map threads_by_name, last_by_tid; /* by the whole struct; by tgid and tid: its last name */
	struct causes waits, wakers;
	uint64_t nr_switches, nr_wakeups;
};

int event_log_new(const char *path, struct diag *diag, struct event_log **ret_events)
{
	struct event_log *events = calloc(1, sizeof(*events));
	int err = events ? event_file_new(path, diag, &events->file) : -ENOMEM;

	if (err) {
		event_log_free(events);
		return err;
	}
	events->oldest_ns = UINT64_MAX;
	*ret_events = events;
	return 0;
}

static void causes_done(struct causes *causes)
{
	free(causes->list);
	u64_map_done(&causes->by_hash);
}

void event_log_free(struct event_log *events)
{
	if (!events)
		return;
	event_file_free(events->file);
	free(events->pending);
	free(events->threads);
	u64_map_done(&events->threads_by_name);
	u64_map_done(&events->last_by_tid);
	causes_done(&events->waits);
	causes_done(&events->wakers);
	free(events);
}

void event_log_begin(struct event_log *events, uint64_t start_ns, const char *command_line)
{
	events->start_ns = start_ns;
	event_file_begin(events->file, start_ns, command_line);
}

/* --- threads -------------------------------------------------------------------------------------------------------------------------- */

/* Notes the thread's present name. */
static int note_last(struct event_log *events, const struct thread *thread, uint32_t number)
{
	uint64_t id = (uint64_t)thread->tgid << 32 | thread->tid;
	uint32_t *last = u64_map_find(&events->last_by_tid, id);

	if (!last)
		return u64_map_add(&events->last_by_tid, id, number);
	*last = number;
	return 0;
}

/* The thread if it was known only by its ids so far; else NULL. */
static struct thread *nameless(const struct event_log *events, const struct thread *thread, uint32_t *ret_number)
{
	const uint32_t *last = u64_map_find(&events->last_by_tid, (uint64_t)thread->tgid << 32 | thread->tid);

	if (!last || events->threads[*last].comm[0])
		return NULL;
	*ret_number = *last;
	return &events->threads[*last];
}

static int new_thread(struct event_log *events, const struct thread *thread, uint32_t *ret_number)
{
	struct thread *known = nameless(events, thread, ret_number);

	if (known) {
		*known = *thread;
	} else {
		if (events->nr_threads == MAX_THREADS)
			return 0;
		if (!array_grow(&events->threads, events->nr_threads, &events->max_threads, sizeof(*events->threads), 256, MAX_THREADS))
			return -ENOMEM;
		*ret_number = events->nr_threads;
		events->threads[events->nr_threads++] = *thread;
	}
	return thread->comm[0] ? u64_map_add(&events->threads_by_name, hash_bytes(thread, sizeof(*thread), 0), *ret_number) : 0;
}

/* `comm`: SONDE_COMM_BYTES of it; NULL: the thread's last name. The idle threads have no number. */
static int number_thread(struct event_log *events, uint32_t tgid, uint32_t tid, const char *comm, uint32_t *ret_number)
{
	struct thread thread = { .tgid = tgid, .tid = tid };
	const uint32_t *number = NULL;
	uint32_t cursor = 0;
	int err = 0;

	*ret_number = EVENT_NONE;
	if (!tid)
		return 0;
	if (comm)
		memcpy(thread.comm, comm, sizeof(thread.comm) - 1);
	if (!thread.comm[0])
		number = u64_map_find(&events->last_by_tid, (uint64_t)tgid << 32 | tid);
	while (thread.comm[0] && (number = u64_map_each(&events->threads_by_name, hash_bytes(&thread, sizeof(thread), 0), &cursor))) {
		if (!memcmp(&events->threads[*number], &thread, sizeof(thread)))
			break;
	}
	if (number)
		*ret_number = *number;
	else
		err = new_thread(events, &thread, ret_number);
	return err || *ret_number == EVENT_NONE ? err : note_last(events, &thread, *ret_number);
}

/* --- waits and wakers ----------------------------------------------------------------------------------------------------------------- */

static int add_cause(struct causes *causes, const struct cause *cause, uint64_t hash, uint32_t *ret_number)
{
	*ret_number = EVENT_NONE;
	if (causes->nr == MAX_CAUSES)
		return 0;
	if (!array_grow(&causes->list, causes->nr, &causes->max, sizeof(*causes->list), 256, MAX_CAUSES) ||
	    u64_map_add(&causes->by_hash, hash, causes->nr))
		return -ENOMEM;
	causes->list[causes->nr] = *cause;
	*ret_number = causes->nr++;
	return 0;
}

static struct sonde_wait_key stacks_of(const struct sonde_wait_key *from)
{
	struct sonde_wait_key key = { .ids = known_ids(&from->ids) };

	key.labels = key.labels_state = key.generation = 0;
	if (key.user_stack || key.runtime_stack) {
		key.tgid = from->tgid;
		key.generation = from->generation;
	}
	return key;
}

static int number_wait(struct event_log *events, const struct sonde_wait_key *key, uint32_t *ret_number)
{
	struct causes *waits = &events->waits;
	struct cause cause = { .key = stacks_of(key), .thread = EVENT_NONE };
	const uint32_t *number;
	uint32_t cursor = 0;
	uint64_t hash;

	cause.key.state = key->state;
	cause.key.syscall = key->syscall;
	hash = hash_bytes(&cause.key, sizeof(cause.key), 0);
	while ((number = u64_map_each(&waits->by_hash, hash, &cursor))) {
		if (!memcmp(&waits->list[*number].key, &cause.key, sizeof(cause.key))) {
			*ret_number = *number;
			return 0;
		}
	}
	return add_cause(waits, &cause, hash, ret_number);
}

/* A waker's record arrives before the first wake-up that refers to it. */
static int take_waker(struct event_log *events, const struct sonde_waker_record *record)
{
	struct cause cause = { .key = stacks_of(&record->waker) };
	const uint32_t *known = u64_map_find(&events->wakers.by_hash, record->hash);
	uint32_t number;
	int err = number_thread(events, record->waker.tgid, record->waker.tid, record->waker.comm, &cause.thread);

	if (!err && known) { /* sent again: the same */
		struct cause *before = &events->wakers.list[*known];

		before->is_disputed |= before->thread != cause.thread || memcmp(&before->key, &cause.key, sizeof(cause.key)) != 0;
		return 0;
	}
	return err ? err : add_cause(&events->wakers, &cause, record->hash, &number);
}

/* --- events --------------------------------------------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct sched_event *event_a = a, *event_b = b;

	return event_a->time_ns < event_b->time_ns ? -1 : event_a->time_ns > event_b->time_ns;
}

/* Writes the pending events that are older than time_ns. */
static void write_until(struct event_log *events, uint64_t time_ns)
{
	uint32_t nr = 0;

	if (!events->nr_pending)
		return;
	qsort(events->pending, events->nr_pending, sizeof(*events->pending), by_time);
	for (; nr < events->nr_pending && events->pending[nr].time_ns < time_ns; nr++)
		event_file_event(events->file, &events->pending[nr]);
	events->nr_pending -= nr;
	memmove(events->pending, events->pending + nr, events->nr_pending * sizeof(*events->pending));
	events->oldest_ns = events->nr_pending ? events->pending[0].time_ns : UINT64_MAX;
}

static int add_event(struct event_log *events, const struct sched_event *event)
{
	if (event->time_ns < events->start_ns)
		return 0;
	if (event->time_ns > events->newest_ns)
		events->newest_ns = event->time_ns;
	if (event->time_ns < events->oldest_ns)
		events->oldest_ns = event->time_ns;
	if (events->nr_pending == MAX_PENDING)
		write_until(events, UINT64_MAX);
	else if (events->newest_ns - events->oldest_ns > 2 * EVENT_ORDER_NS)
		write_until(events, events->newest_ns - EVENT_ORDER_NS);
	if (!array_grow(&events->pending, events->nr_pending, &events->max_pending, sizeof(*events->pending), 1024, MAX_PENDING))
		return -ENOMEM;
	events->pending[events->nr_pending++] = *event;
	*(event->is_wakeup ? &events->nr_wakeups : &events->nr_switches) += 1;
	return 0;
}

static int take_switch(struct event_log *events, const struct sonde_switch_record *record)
{
	struct sched_event event = { .time_ns = record->time_ns, .cpu = record->cpu, .cause = EVENT_NONE };
	int err = number_thread(events, record->prev.tgid, record->prev.tid, record->prev.comm, &event.thread);

	if (!err)
		err = number_thread(events, record->next_tgid, record->next_tid, record->next_comm, &event.next);
	if (!err && event.thread != EVENT_NONE)
		err = number_wait(events, &record->prev, &event.cause);
	return err ? err : add_event(events, &event);
}

static int take_wakeup(struct event_log *events, const struct sonde_wakeup_record *record)
{
	struct sched_event event = {
		.time_ns = record->time_ns, .cpu = record->cpu, .is_wakeup = true, .cause = EVENT_NONE, .next = EVENT_NONE
	};
	const uint32_t *waker = record->waker ? u64_map_find(&events->wakers.by_hash, record->waker) : NULL;
	int err = number_thread(events, record->tgid, record->tid, NULL, &event.thread);

	if (waker)
		event.cause = *waker;
	return err ? err : add_event(events, &event);
}

int event_log_record(struct event_log *events, const void *record)
{
	uint32_t type = *(const uint32_t *)record;

	if (type == SONDE_RECORD_WAKER)
		return take_waker(events, record);
	return type == SONDE_RECORD_SWITCH ? take_switch(events, record) : take_wakeup(events, record);
}

/* --- the end -------------------------------------------------------------------------------------------------------------------------- */

static int write_waits(struct event_log *events, struct stack_builder *builder)
{
	CLEANUP(wait_kinds_done) struct wait_kinds kinds = { 0 };
	int err = 0;

	for (uint32_t i = 0; !err && i < events->waits.nr; i++) {
		const struct cause *cause = &events->waits.list[i];
		struct event_wait wait = { .number = i, .state = cause->key.state, .syscall = cause->key.syscall };
		struct profile_sample stacks = { 0 };
		enum wait_kind kind;

		err = wait_stack_make(&kinds, builder, events->profile, &cause->key, cause->key.user_stack, 0, &stacks, &kind);
		if (err)
			break;
		wait.user_stack = stacks.user_stack;
		wait.kernel_stack = stacks.kernel_stack;
		wait.kind = wait_kind_name(kind);
		event_file_wait(events->file, &wait);
	}
	return err;
}

static int make_waker(struct stack_builder *builder, const struct cause *cause, struct event_wait *ret_waker)
{
	const struct stack_ids ids = wait_ids(&cause->key);
	struct profile_sample sample = { 0 };
	int err = stack_builder_sample(builder, &ids, 0, &sample);

	ret_waker->user_stack = sample.user_stack;
	ret_waker->kernel_stack = sample.kernel_stack;
	return err;
}

static int write_wakers(struct event_log *events, struct stack_builder *builder)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < events->wakers.nr; i++) {
		const struct cause *cause = &events->wakers.list[i];
		struct event_wait waker = { .number = i, .thread = cause->thread };

		if (cause->is_disputed) { /* then it may be for any process */
			waker = (struct event_wait){
				.number = i, .thread = EVENT_NONE, .user_stack = PROFILE_NONE, .kernel_stack = PROFILE_NONE
			};
			profile_account(events->profile)->missed_collided++;
		} else {
			err = make_waker(builder, cause, &waker);
		}
		if (!err)
			event_file_waker(events->file, &waker);
	}
	return err;
}

int event_log_end(struct event_log *events, struct stack_builder *builder, struct profile *profile, const struct event_end *end,
		  struct diag *diag)
{
	const struct event_totals totals = { .start_ns = events->start_ns,
					     .end_ns = end->end_ns,
					     .unix_offset_ns = end->unix_offset_ns,
					     .nr_switches = events->nr_switches,
					     .nr_wakeups = events->nr_wakeups,
					     .nr_lost = end->nr_lost };
	int err;

	events->profile = profile;
	write_until(events, UINT64_MAX);
	for (uint32_t i = 0; i < events->nr_threads; i++)
		event_file_thread(events->file, i, events->threads[i].tgid, events->threads[i].tid, events->threads[i].comm);
	err = write_waits(events, builder);
	if (!err)
		err = write_wakers(events, builder);
	return err ? err : event_file_end(events->file, events->profile, &totals, diag);
}
