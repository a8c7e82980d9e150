// SPDX-License-Identifier: Apache-2.0
#include "stacks/stack_recorder.h"

#include <errno.h>
#include <string.h>

#include "abi/record.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "collect/record.h"

#define PENDING_BYTES_MAX (256u << 20)
#define DEFERRED_WAIT_NS 1000000000u /* after this time the thread has ended, or sleeps, and will not send its stack */
#define USED_BYTES_MAX ((size_t)1 << 30)

/* A store, and who still needs it. */
struct kept_store {
	struct stack_store *store;
	struct kept_store *next;
	bool is_read;           /* its window is being resolved */
};

struct stack_recorder {
	struct buffer pending;      /* records of this reading, and samples that wait for deferred stacks; each at a multiple of 8 */
	struct buffer waiting;      /* samples whose deferred stack has not arrived, or whose window has not begun */
	struct buffer used;         /* struct used each: samples used since the last report to the walker */
	struct samples *samples;    /* of the open window */
	struct samples *cut;        /* of the window that was cut and is not closed yet; NULL: none */
	uint64_t border_ns;         /* between the two windows, or where the next cut will be; UINT64_MAX: not known yet */
	struct kept_store *stores;  /* youngest first: the open window's, the previous one's, those being resolved */
	struct known_names *names;  /* of the windows before */
	struct stack_store *next;   /* the next window's, while one is cut: already has what continues; NULL: not created yet */
	uint64_t newest_ns;         /* latest time of the samples that waited, and of the borders */
	uint64_t nr_samples;
	struct account *account;
	struct identities *identities; /* NULL: none */
	bool with_times, at_event;
};

struct used {
	struct samples *samples;
	uint32_t number;
};

static int push_store(struct stack_recorder *recorder, struct stack_store *store)
{
	struct kept_store *kept = store ? calloc(1, sizeof(*kept)) : NULL;

	if (!kept)
		return -ENOMEM;
	*kept = (struct kept_store){ .store = store, .next = recorder->stores };
	recorder->stores = kept;
	return 0;
}

struct stack_recorder *stack_recorder_new(bool with_times, struct account *account)
{
	struct stack_recorder *recorder = calloc(1, sizeof(*recorder));
	struct stack_store *store = stack_store_new();

	if (recorder) {
		recorder->with_times = with_times;
		recorder->border_ns = UINT64_MAX;
		recorder->pending = recorder->waiting = BUFFER_INIT(PENDING_BYTES_MAX);
		recorder->used = BUFFER_INIT(USED_BYTES_MAX);
		recorder->account = account;
		recorder->samples = samples_new();
		recorder->names = known_names_new();
	}
	if (recorder && recorder->samples && recorder->names && !push_store(recorder, store))
		return recorder;
	stack_store_free(store, NULL);
	stack_recorder_free(recorder, NULL);
	return NULL;
}

void stack_recorder_at_events(struct stack_recorder *recorder)
{
	recorder->at_event = true;
}

void stack_recorder_free(struct stack_recorder *recorder, const struct process_table *processes)
{
	struct kept_store *next;

	if (!recorder)
		return;
	for (struct kept_store *kept = recorder->stores; kept; kept = next) {
		next = kept->next;
		stack_store_free(kept->store, processes);
		free(kept);
	}
	stack_store_free(recorder->next, processes);
	buffer_done(&recorder->pending);
	buffer_done(&recorder->waiting);
	buffer_done(&recorder->used);
	samples_free(recorder->samples);
	samples_free(recorder->cut);
	known_names_free(recorder->names);
	free(recorder);
}

void stack_recorder_use_identities(struct stack_recorder *recorder, struct identities *identities)
{
	recorder->identities = identities;
}

static struct stack_store *open_store(const struct stack_recorder *recorder)
{
	return recorder->stores->store;
}

/* NULL: this is the first. */
static struct stack_store *store_before(const struct stack_recorder *recorder)
{
	return recorder->stores->next ? recorder->stores->next->store : NULL;
}

size_t stack_recorder_bytes(const struct stack_recorder *recorder)
{
	return stack_store_bytes(open_store(recorder)) + samples_bytes(recorder->samples);
}

uint64_t stack_recorder_nr_samples(const struct stack_recorder *recorder)
{
	return recorder->nr_samples;
}

const struct stack_store *stack_recorder_store(const struct stack_recorder *recorder)
{
	return open_store(recorder);
}

static int note_use(struct stack_recorder *recorder, struct samples *samples, uint32_t number, uint64_t time_ns)
{
	const struct used used = { .samples = samples, .number = number };

	if (samples_use(samples, number, time_ns))
		buffer_append(&recorder->used, &used, sizeof(used));
	return recorder->used.err;
}

/* Adds the sample to the window of its time. */
static int add_sample(struct stack_recorder *recorder, const struct sonde_sample_record *record, uint32_t user_generation,
		      const struct process_table *processes)
{
	struct samples *samples = recorder->cut && record->time_ns < recorder->border_ns ? recorder->cut : recorder->samples;
	struct sample_key key = { 0 };
	uint32_t number;
	int err;

	key.ids = (struct stack_ids){
		.ids = known_ids(&record->ids), .tgid = record->tgid, .user_generation = user_generation, .at_event = recorder->at_event
	};
	key.tid = record->tid;
	key.cpu = record->cpu;
	key.time_ns = recorder->with_times ? record->time_ns : 0;
	memcpy(key.comm, record->comm, sizeof(key.comm));
	key.comm[sizeof(key.comm) - 1] = '\0';
	if (recorder->identities)
		key.labels = identities_at(recorder->identities, record->tgid, record->time_ns);
	recorder->nr_samples++;
	number = samples_add(samples, &key);
	if (number == SAMPLES_NO_MEMORY)
		return -ENOMEM;
	err = samples_at(samples, number)->count > 1 ? 0
						     : stack_store_keep(open_store(recorder), store_before(recorder), &key.ids, processes);
	return err ? err : note_use(recorder, samples, number, record->time_ns);
}

int stack_recorder_record(struct stack_recorder *recorder, const void *record)
{
	static const char zero[8];
	size_t size = record_bytes(record);

	buffer_append(&recorder->pending, record, size);
	buffer_append(&recorder->pending, zero, -size % sizeof(zero)); /* aligns the next one */
	if (recorder->pending.err)
		return -ENOMEM;
	if (recorder->identities && *(const uint32_t *)record == SONDE_RECORD_SAMPLE) /* at once: the process may end at any time */
		return identities_meet(recorder->identities, ((const struct sonde_sample_record *)record)->tgid);
	return 0;
}

static int resolve_stack(struct stack_recorder *recorder, const struct sonde_stack_record *record, const struct process_table *processes)
{
	const struct stack_origin origin = {
		.tgid = record->tgid, .generation = record->generation, .time_ns = record->time_ns, .known_ns = record->known_ns
	};
	const struct deferred_stack stack = { .frames = (const uint64_t *)(record + 1),
					      .hash = record->hash,
					      .nr_walked = record->nr_walked,
					      .nr_frames = record->nr_frames,
					      .stop = record->stop };
	struct stack *made;

	return stack_table_add(open_store(recorder)->stacks, &origin, &stack, processes, &made);
}

static int resolve_deferred(struct stack_recorder *recorder, const struct sonde_deferred_record *record,
			    const struct process_table *processes, const struct stack_walker *walker)
{
	struct stack_origin origin = { .tgid = record->tgid, .time_ns = record->time_ns };
	struct deferred_stack stack;
	struct stack *made = NULL;
	int err = walker->walk(walker->arg, record, &stack);

	origin.generation = err ? 0 : stack.generation;
	if (!err && stack.runtime)
		err = runtime_stacks_record(open_store(recorder)->runtimes, stack.runtime, walker, recorder->names);
	if (!err)
		err = stack_table_add(open_store(recorder)->stacks, &origin, &stack, processes, &made);
	if (err)
		return err;
	if (stack_owner_is(&made->owner, origin.tgid, origin.generation))
		return stack_table_add_deferred(open_store(recorder)->stacks, record->id, made);
	recorder->account->missed_collided++; /* the sample finds no stack */
	return 0;
}

static int resolve_audit(struct stack_recorder *recorder, const struct sonde_deferred_record *record, const struct stack_walker *walker)
{
	const struct stack_table *stacks = open_store(recorder)->stacks;
	const struct stack *stack = stack_table_find(stacks, record->id);

	if (stack && stack->owner.tgid != record->tgid)
		stack = NULL;
	return walker->check(walker->arg, record, stack_table_locations(stacks), stack ? stack_table_frames(stacks, stack) : NULL,
			     stack ? stack->nr : 0, stack ? stack->stop : SONDE_STOP_COMPLETE);
}

/* A sample whose stack has a hash. Another file may be mapped meanwhile. Until the kernel side is informed, it gives stacks through the new
 * mapping the hashes that they had before. */
static int resolve_stored(struct stack_recorder *recorder, const struct sonde_sample_record *record, const struct process_table *processes)
{
	const uint64_t end_ns = record->generation ? process_table_generation_end(processes, record->tgid, record->generation) : UINT64_MAX;
	const struct stack_ids ids = { .user_stack = record->user_stack, .user_state = record->user_state };
	struct sonde_sample_record sample = *record;
	const struct stack *stack;
	int err;

	if (record->time_ns < end_ns || record->user_state != SONDE_STACK_STORED)
		return add_sample(recorder, record, record->generation, processes);
	err = stack_store_keep(open_store(recorder), store_before(recorder), &ids, processes);
	stack = err ? NULL : stack_table_find(open_store(recorder)->stacks, record->user_stack);
	if (stack && stack_owner_is(&stack->owner, record->tgid, record->generation)) {
		const struct stack_origin origin = {
			.tgid = record->tgid, .generation = record->generation, .time_ns = record->time_ns, .known_ns = end_ns - 1
		};

		err = stack_table_add_later(open_store(recorder)->stacks, stack, &origin, processes, &stack);
		sample.user_stack = stack->hash;
	}
	return err ? err : add_sample(recorder, &sample, sample.generation, processes);
}

/* A sample with a deferred stack. Replaces the sample's stack id by the hash that the walk gave the stack. If the stack has not arrived
 * yet, the sample waits, DEFERRED_WAIT_NS at most. */
static int resolve_deferred_sample(struct stack_recorder *recorder, const struct sonde_sample_record *record,
				   const struct process_table *processes)
{
	const struct stack_ids ids = { .user_stack = record->user_stack, .user_state = SONDE_STACK_DEFERRED };
	struct sonde_sample_record sample = *record;
	const struct stack *stack;
	int err = stack_store_keep(open_store(recorder), store_before(recorder), &ids, processes);

	if (err)
		return err;
	stack = stack_table_find_deferred(open_store(recorder)->stacks, record->user_stack);
	if (record->time_ns > recorder->newest_ns)
		recorder->newest_ns = record->time_ns;
	if (stack && stack->owner.tgid != record->tgid) {
		recorder->account->missed_collided++;
		stack = NULL;
	}
	if (!stack && recorder->newest_ns - record->time_ns < DEFERRED_WAIT_NS) { /* the thread itself must send the stack */
		buffer_append(&recorder->waiting, record, sizeof(*record));
		return recorder->waiting.err;
	}
	sample.user_state = stack ? SONDE_STACK_STORED : SONDE_STACK_LOST;
	if (stack) {
		sample.user_stack = stack->hash;
		stack_table_forget_deferred(open_store(recorder)->stacks, record->user_stack);
	}
	return add_sample(recorder, &sample, stack ? stack->owner.generation : 0, processes);
}

static int resolve_sample(struct stack_recorder *recorder, const struct sonde_sample_record *record, const struct process_table *processes)
{
	if (!recorder->cut && record->time_ns >= recorder->border_ns) { /* of the next window, which has not begun */
		buffer_append(&recorder->waiting, record, sizeof(*record));
		return recorder->waiting.err;
	}
	return record->user_state == SONDE_STACK_DEFERRED ? resolve_deferred_sample(recorder, record, processes)
							  : resolve_stored(recorder, record, processes);
}

/* Reports the files that a stack passed through, and the file whose missing table ended it. */
static int mark_stack_used(struct stack_recorder *recorder, const struct stack *stack, uint64_t time_ns, const struct stack_walker *walker)
{
	const struct stack_table *stacks = open_store(recorder)->stacks;
	const uint32_t *frames = stack_table_frames(stacks, stack);
	uint32_t object = OBJECT_NONE;

	for (uint32_t i = 0; i < stack->nr; i++) {
		object = location_at(stack_table_locations(stacks), frames[i])->object;
		if (object != OBJECT_NONE)
			walker->used(walker->arg, object, time_ns);
	}
	return stack->stop == SONDE_STOP_NOT_LOADED && object != OBJECT_NONE ? walker->need(walker->arg, object, time_ns) : 0;
}

/* Reports all stacks that were sampled since the last report. */
static int mark_used(struct stack_recorder *recorder, const struct stack_walker *walker)
{
	const struct used *used = (const struct used *)recorder->used.data;
	int err = 0;

	for (size_t i = 0; !err && i < recorder->used.size / sizeof(*used); i++) {
		const struct sample *sample = samples_report(used[i].samples, used[i].number);
		const struct stack *stack = sample->key.ids.user_state == SONDE_STACK_STORED
						? stack_table_find(open_store(recorder)->stacks, sample->key.ids.user_stack)
						: NULL;

		if (stack && walker->used)
			err = mark_stack_used(recorder, stack, sample->newest_ns, walker);
	}
	recorder->used.size = 0;
	return err;
}

static int resolve(struct stack_recorder *recorder, const void *record, const struct process_table *processes,
		   const struct stack_walker *walker)
{
	const struct stack_store *store = open_store(recorder);

	switch (*(const uint32_t *)record) {
	case SONDE_RECORD_STACK:
		return resolve_stack(recorder, record, processes);
	case SONDE_RECORD_RUNTIME:
		return runtime_stacks_record(store->runtimes, record, walker, recorder->names);
	case SONDE_RECORD_CODE:
		runtime_stacks_code(store->runtimes, record);
		return 0;
	case SONDE_RECORD_LABELS:
		return label_table_record(store->labels, record, walker);
	case SONDE_RECORD_WAKER:
		return waker_table_record(store->wakers, record);
	case SONDE_RECORD_DEFERRED:
		return ((const struct sonde_deferred_record *)record)->use == SONDE_DEFERRED_AUDIT
			   ? resolve_audit(recorder, record, walker)
			   : resolve_deferred(recorder, record, processes, walker);
	case SONDE_RECORD_SAMPLE:
		return resolve_sample(recorder, record, processes);
	default:
		return -EBADMSG;
	}
}

int stack_recorder_resolve(struct stack_recorder *recorder, const struct process_table *processes, const struct stack_walker *walker)
{
	int err = 0;

	for (size_t off = 0; !err && off < recorder->pending.size;) {
		const void *record = recorder->pending.data + off;

		err = resolve(recorder, record, processes, walker);
		off += (record_bytes(record) + 7) / 8 * 8;
	}
	if (!err)
		err = mark_used(recorder, walker);
	if (!err)
		err = runtime_stacks_ask_again(open_store(recorder)->runtimes, walker);
	if (!err)
		err = label_table_ask_again(open_store(recorder)->labels, walker);
	recorder->pending.size = 0;
	buffer_append(&recorder->pending, recorder->waiting.data, recorder->waiting.size);
	recorder->waiting.size = 0;
	return err ? err : recorder->pending.err;
}

int stack_recorder_give_up(struct stack_recorder *recorder, const struct process_table *processes)
{
	int err = 0;

	recorder->newest_ns = recorder->border_ns = UINT64_MAX;
	for (size_t off = 0; !err && off < recorder->pending.size; off += sizeof(struct sonde_sample_record))
		err = resolve_sample(recorder, (const void *)(recorder->pending.data + off), processes);
	recorder->pending.size = recorder->used.size = 0;
	return err;
}

/* --- windows -------------------------------------------------------------------------------------------------------------------------- */

void stack_recorder_set_border(struct stack_recorder *recorder, uint64_t border_ns)
{
	recorder->border_ns = border_ns;
}

int stack_recorder_cut(struct stack_recorder *recorder, uint64_t border_ns)
{
	struct samples *samples = samples_new();

	recorder->next = samples ? stack_store_new() : NULL;
	if (!recorder->next) {
		samples_free(samples);
		return -ENOMEM;
	}
	recorder->cut = recorder->samples;
	recorder->samples = samples;
	recorder->border_ns = border_ns;
	/* a sample that waits longer than DEFERRED_WAIT_NS outlives the payloads that it refers to */
	if (border_ns != UINT64_MAX && border_ns > recorder->newest_ns)
		recorder->newest_ns = border_ns;
	return 0;
}

int stack_recorder_keep(struct stack_recorder *recorder, const struct stack_ids *ids, uint64_t waker, const struct process_table *processes)
{
	int err = stack_store_keep(open_store(recorder), store_before(recorder), ids, processes);

	return err ? err : stack_store_keep_waker(open_store(recorder), store_before(recorder), waker, processes);
}

int stack_recorder_keep_on(struct stack_recorder *recorder, const struct stack_ids *ids, uint64_t waker,
			   const struct process_table *processes)
{
	int err = stack_store_keep(recorder->next, open_store(recorder), ids, processes);

	return err ? err : stack_store_keep_waker(recorder->next, open_store(recorder), waker, processes);
}

/* Frees the stores that nobody needs any more. */
static void sweep(struct stack_recorder *recorder, const struct process_table *processes)
{
	struct kept_store **link = recorder->stores->next ? &recorder->stores->next->next : &recorder->stores->next, *kept;

	while ((kept = *link)) {
		if (kept->is_read) {
			link = &kept->next;
			continue;
		}
		*link = kept->next;
		stack_store_free(kept->store, processes);
		free(kept);
	}
}

int stack_recorder_close(struct stack_recorder *recorder, const struct process_table *processes, struct closed_window *ret_window)
{
	struct kept_store *closed = recorder->stores;
	int err = 0;

	for (uint32_t i = 0; !err && i < samples_nr(recorder->samples); i++)
		err = stack_store_keep(recorder->next, closed->store, &samples_at(recorder->samples, i)->key.ids, processes);
	if (!err)
		err = push_store(recorder, recorder->next);
	if (err)
		return err;
	*ret_window = (struct closed_window){ .store = closed->store, .samples = MOVE(recorder->cut) };
	recorder->next = NULL;
	recorder->border_ns = UINT64_MAX;
	closed->is_read = true;
	known_names_learn(recorder->names, runtime_stacks_table(closed->store->runtimes), clock_ns());
	sweep(recorder, processes);
	return 0;
}

void stack_recorder_done(struct stack_recorder *recorder, const struct stack_store *store, const struct process_table *processes)
{
	for (struct kept_store *kept = recorder->stores; kept; kept = kept->next) {
		if (kept->store == store)
			kept->is_read = false;
	}
	sweep(recorder, processes);
}
