// SPDX-License-Identifier: Apache-2.0
#include "session/stack_book.h"

#include <errno.h>
#include <string.h>

#include "abi/record.h"
#include "base/buffer.h"
#include "base/interned.h"
#include "session/label_book.h"
#include "session/runtime_book.h"

#define PENDING_BYTES_MAX (256u << 20)
#define RAW_WAIT_NS 1000000000u /* a thread that has not gone on to its program by then has ended, or sleeps */
#define STACKS_BYTES ((size_t)256 << 20) /* then no more are made room for: what comes beyond that is missed */
#define SAMPLES_BYTES_MAX ((size_t)4 << 30)

/* Equal samples but for their number. Zeroed before it is filled: it is hashed and compared whole. */
struct sample_key {
	struct stack_sides sides; /* its tgid is the sample's */
	uint32_t tid, cpu;
	uint64_t time_ns; /* CLOCK_MONOTONIC; 0: those of all times are one */
	char comm[SONDE_COMM_BYTES];
};

struct sample {
	struct sample_key key;
	uint64_t count;
	uint64_t newest_ns;
	bool is_used;        /* it stands in the list `used` */
};

struct stack_book {
	struct buffer pending;      /* records of this reading, and samples that wait for their raw stacks; each at a multiple of 8 */
	struct interned samples;    /* of struct sample */
	struct buffer used;         /* uint32_t each: samples that came since the walker was told what was used */
	struct buffer waiting;      /* samples whose raw stacks have not come yet */
	uint64_t newest_ns;         /* of the samples that waited */
	struct stack_table *table;
	struct runtime_book *runtimes;
	struct label_book *labels;
	struct profile *profile;
	struct namer *namer;        /* both at the end, when names are there */
	struct stack_maker *maker;
	uint64_t nr_samples;
	bool with_times;
};

struct stack_book *stack_book_new(bool with_times, struct profile *profile)
{
	struct stack_book *book = calloc(1, sizeof(*book));

	if (!book)
		return NULL;
	book->with_times = with_times;
	book->pending = book->waiting = BUFFER_INIT(PENDING_BYTES_MAX);
	book->samples = INTERNED_INIT(struct sample, sizeof(struct sample_key), SAMPLES_BYTES_MAX);
	book->used = BUFFER_INIT(SAMPLES_BYTES_MAX);
	book->profile = profile;
	book->table = stack_table_new();
	book->runtimes = runtime_book_new();
	book->labels = label_book_new();
	if (!book->table || !book->runtimes || !book->labels) {
		stack_book_free(book);
		return NULL;
	}
	return book;
}

void stack_book_free(struct stack_book *book)
{
	if (!book)
		return;
	buffer_done(&book->pending);
	buffer_done(&book->waiting);
	interned_done(&book->samples);
	buffer_done(&book->used);
	stack_maker_free(book->maker);
	namer_free(book->namer);
	stack_table_free(book->table);
	runtime_book_free(book->runtimes);
	label_book_free(book->labels);
	free(book);
}

bool stack_book_has_room(const struct stack_book *book)
{
	return stack_table_bytes(book->table) + runtime_book_bytes(book->runtimes) + label_book_bytes(book->labels) < STACKS_BYTES;
}

uint64_t stack_book_nr_samples(const struct stack_book *book)
{
	return book->nr_samples;
}

const struct place_table *stack_book_places(const struct stack_book *book)
{
	return stack_table_places(book->table);
}

static struct sample *sample_at(const struct stack_book *book, uint32_t i)
{
	return interned_at(&book->samples, i);
}

static int note_use(struct stack_book *book, uint32_t number, uint64_t time_ns)
{
	struct sample *sample = sample_at(book, number);

	if (sample->newest_ns < time_ns)
		sample->newest_ns = time_ns;
	if (!sample->is_used)
		buffer_append(&book->used, &number, sizeof(number));
	sample->is_used = true;
	return book->used.err;
}

static int add_sample(struct stack_book *book, const struct sonde_sample_record *record, uint32_t user_generation)
{
	struct sample sample = { 0 };
	struct sample_key *key = &sample.key;
	uint32_t number;

	/* without a body the hash says nothing: a full store must not make every sample one of its own */
	key->sides = (struct stack_sides){
		.user_stack = record->user_side == SONDE_SIDE_STORED ? record->user_stack : 0,
		.kernel_stack = record->kernel_side == SONDE_SIDE_STORED ? record->kernel_stack : 0,
		.runtime_stack = record->runtime_side == SONDE_SIDE_STORED ? record->runtime_stack : 0,
		.labels = record->labels_side == SONDE_SIDE_STORED ? record->labels : 0,
		.tgid = record->tgid,
		.generation = record->generation,
		.user_generation = user_generation,
		.user_side = record->user_side,
		.kernel_side = record->kernel_side,
		.runtime_side = record->runtime_side,
		.labels_side = record->labels_side,
	};
	key->tid = record->tid;
	key->cpu = record->cpu;
	key->time_ns = book->with_times ? record->time_ns : 0;
	memcpy(key->comm, record->comm, sizeof(key->comm));
	key->comm[sizeof(key->comm) - 1] = '\0';
	book->nr_samples++;
	number = interned_add(&book->samples, &sample);
	if (number == INTERNED_NONE)
		return -ENOMEM;
	sample_at(book, number)->count++;
	return note_use(book, number, record->time_ns);
}

/* How many bytes a record is long. */
static size_t record_bytes(const void *record)
{
	const struct sonde_stack_record *stack = record;
	const struct sonde_raw_record *raw = record;
	const struct sonde_runtime_record *runtime = record;
	const struct sonde_labels_record *labels = record;

	if (stack->type == SONDE_RECORD_STACK)
		return sizeof(*stack) + stack->nr_frames * sizeof(uint64_t);
	if (raw->type == SONDE_RECORD_RAW)
		return sizeof(*raw) + raw->stack_bytes;
	if (runtime->type == SONDE_RECORD_RUNTIME)
		return sizeof(*runtime) + runtime->nr_frames * sizeof(struct sonde_runtime_frame);
	if (labels->type == SONDE_RECORD_LABELS)
		return sizeof(*labels) + labels->nr_labels * sizeof(struct sonde_label);
	return stack->type == SONDE_RECORD_CODE ? sizeof(struct sonde_code_record) : sizeof(struct sonde_sample_record);
}

int stack_book_record(struct stack_book *book, const void *record)
{
	static const char zero[8];
	size_t size = record_bytes(record);

	buffer_append(&book->pending, record, size);
	buffer_append(&book->pending, zero, -size % sizeof(zero)); /* so that the next one is aligned */
	return book->pending.err ? -ENOMEM : 0;
}

static int resolve_stack(struct stack_book *book, const struct sonde_stack_record *record, const struct process_table *processes)
{
	const struct stack_origin origin = { .tgid = record->tgid, .generation = record->generation, .time_ns = record->time_ns, .known_ns = record->known_ns };
	const struct raw_stack stack = { .frames = (const uint64_t *)(record + 1), .hash = record->hash, .nr_walked = record->nr_walked, .nr_frames = record->nr_frames,
					 .stop = record->stop };
	struct stack *made;

	return stack_table_add(book->table, &origin, &stack, processes, &made);
}

static int resolve_raw(struct stack_book *book, const struct sonde_raw_record *record, const struct process_table *processes, const struct stack_walker *walker)
{
	struct stack_origin origin = { .tgid = record->tgid, .time_ns = record->time_ns };
	struct raw_stack stack;
	struct stack *made = NULL;
	int err = walker->walk(walker->arg, record, &stack);

	origin.generation = err ? 0 : stack.generation;
	if (!err)
		err = stack_table_add(book->table, &origin, &stack, processes, &made);
	if (err)
		return err;
	if (stack_owner_is(&made->owner, origin.tgid, origin.generation))
		return stack_table_add_raw(book->table, record->id, made);
	profile_account(book->profile)->missed_collided++; /* the sample finds none */
	return 0;
}

static int resolve_audit(struct stack_book *book, const struct sonde_raw_record *record, const struct stack_walker *walker)
{
	const struct stack *stack = stack_table_find(book->table, record->id);

	if (stack && stack->owner.tgid != record->tgid)
		stack = NULL;
	return walker->check(walker->arg, record, stack_table_places(book->table), stack ? stack_table_frames(book->table, stack) : NULL, stack ? stack->nr : 0,
			     stack ? stack->stop : SONDE_STOP_COMPLETE);
}

/* A sample whose stack has a hash. Until the kernel side is told that another file is mapped there, it goes on to give stacks through that the hashes that they had. */
static int resolve_stored(struct stack_book *book, const struct sonde_sample_record *record, const struct process_table *processes)
{
	const uint64_t end_ns = record->generation ? process_table_generation_end(processes, record->tgid, record->generation) : UINT64_MAX;
	const struct stack *stack = record->time_ns >= end_ns && record->user_side == SONDE_SIDE_STORED ? stack_table_find(book->table, record->user_stack) : NULL;
	struct sonde_sample_record sample = *record;
	int err = 0;

	if (stack && stack_owner_is(&stack->owner, record->tgid, record->generation)) {
		const struct stack_origin origin = { .tgid = record->tgid, .generation = record->generation, .time_ns = record->time_ns, .known_ns = end_ns - 1 };

		err = stack_table_add_later(book->table, stack, &origin, processes, &stack);
		sample.user_stack = stack->hash;
	}
	return err ? err : add_sample(book, &sample, sample.generation);
}

/* A sample whose stack came raw: by now it has a hash. */
static int resolve_raw_sample(struct stack_book *book, const struct sonde_sample_record *record)
{
	const struct stack *stack = stack_table_find_raw(book->table, record->user_stack);
	struct sonde_sample_record sample = *record;

	if (record->time_ns > book->newest_ns)
		book->newest_ns = record->time_ns;
	if (stack && stack->owner.tgid != record->tgid) {
		profile_account(book->profile)->missed_collided++;
		stack = NULL;
	}
	if (!stack && book->newest_ns - record->time_ns < RAW_WAIT_NS) { /* one that the thread itself has to send */
		buffer_append(&book->waiting, record, sizeof(*record));
		return book->waiting.err;
	}
	sample.user_side = stack ? SONDE_SIDE_STORED : SONDE_SIDE_LOST;
	if (stack) {
		sample.user_stack = stack->hash;
		stack_table_forget_raw(book->table, record->user_stack);
	}
	return add_sample(book, &sample, stack ? stack->owner.generation : 0);
}

/* Which files a stack came to, and which one's table it ended without. */
static int tell_stack_used(struct stack_book *book, const struct stack *stack, uint64_t time_ns, const struct stack_walker *walker)
{
	const uint32_t *frames = stack_table_frames(book->table, stack);
	uint32_t object = OBJECT_NONE;

	for (uint32_t i = 0; i < stack->nr; i++) {
		object = place_at(stack_table_places(book->table), frames[i])->object;
		if (object != OBJECT_NONE)
			walker->used(walker->arg, object, time_ns);
	}
	return stack->stop == SONDE_STOP_NOT_LOADED && object != OBJECT_NONE ? walker->need(walker->arg, object, time_ns) : 0;
}

/* Of all stacks that were sampled since. */
static int tell_used(struct stack_book *book, const struct stack_walker *walker)
{
	const uint32_t *used = (const uint32_t *)book->used.data;
	int err = 0;

	for (size_t i = 0; !err && i < book->used.size / sizeof(*used); i++) {
		struct sample *sample = sample_at(book, used[i]);
		const struct stack *stack = sample->key.sides.user_side == SONDE_SIDE_STORED ? stack_table_find(book->table, sample->key.sides.user_stack) : NULL;

		sample->is_used = false;
		if (stack && walker->used)
			err = tell_stack_used(book, stack, sample->newest_ns, walker);
	}
	book->used.size = 0;
	return err;
}

int stack_book_resolve(struct stack_book *book, const struct process_table *processes, const struct stack_walker *walker)
{
	int err = 0;

	for (size_t off = 0; !err && off < book->pending.size;) {
		const void *record = book->pending.data + off;
		uint32_t type = *(const uint32_t *)record;

		if (type == SONDE_RECORD_STACK)
			err = resolve_stack(book, record, processes);
		else if (type == SONDE_RECORD_RUNTIME)
			err = runtime_book_record(book->runtimes, record, walker, book->profile);
		else if (type == SONDE_RECORD_CODE)
			runtime_book_code(book->runtimes, record);
		else if (type == SONDE_RECORD_LABELS)
			err = label_book_record(book->labels, record, walker);
		else if (type == SONDE_RECORD_RAW)
			err = ((const struct sonde_raw_record *)record)->use == SONDE_RAW_AUDIT ? resolve_audit(book, record, walker) :
												  resolve_raw(book, record, processes, walker);
		else if (((const struct sonde_sample_record *)record)->user_side == SONDE_SIDE_RAW)
			err = resolve_raw_sample(book, record);
		else
			err = resolve_stored(book, record, processes);
		off += (record_bytes(record) + 7) / 8 * 8;
	}
	if (!err)
		err = tell_used(book, walker);
	if (!err)
		err = runtime_book_ask_again(book->runtimes, walker, book->profile);
	book->pending.size = 0;
	buffer_append(&book->pending, book->waiting.data, book->waiting.size);
	book->waiting.size = 0;
	return err ? err : book->pending.err;
}

/* Samples whose stacks came raw, but not any more in time. */
static int give_up_waiting(struct stack_book *book)
{
	int err = 0;

	book->newest_ns = UINT64_MAX;
	for (size_t off = 0; !err && off < book->pending.size; off += sizeof(struct sonde_sample_record))
		err = resolve_raw_sample(book, (const void *)(book->pending.data + off));
	book->pending.size = 0;
	return err;
}

static int profile_of_sample(struct stack_book *book, const struct sample *from, uint64_t unix_offset_ns)
{
	struct profile_sample sample = {
		.tgid = from->key.sides.tgid,
		.tid = from->key.tid,
		.cpu = from->key.cpu,
		.comm = profile_string(book->profile, from->key.comm),
		.time_ns = from->key.time_ns ? from->key.time_ns + unix_offset_ns : 0,
		.values = { from->count > INT64_MAX ? INT64_MAX : (int64_t)from->count },
	};
	int err = sample.comm == PROFILE_NONE ? -ENOMEM : stack_maker_sample(book->maker, &from->key.sides, from->count, &sample);

	return err ? err : profile_add(book->profile, &sample);
}

uint32_t stack_book_nr_different(const struct stack_book *book)
{
	return book->samples.nr;
}

struct stack_sample stack_book_sample(const struct stack_book *book, uint32_t number)
{
	const struct sample *sample = sample_at(book, number);

	return (struct stack_sample){ .sides = &sample->key.sides, .tgid = sample->key.sides.tgid, .tid = sample->key.tid, .cpu = sample->key.cpu, .comm = sample->key.comm,
				      .count = sample->count };
}

int stack_book_read_names(struct stack_book *book, const struct process_table *processes, const struct naming *naming, struct stack_maker **ret_maker)
{
	int err = give_up_waiting(book);

	if (err)
		return err;
	if (!book->namer)
		book->namer = namer_new(stack_table_places(book->table), processes, naming, book->profile);
	if (book->namer && !book->maker)
		book->maker = stack_maker_new(book->table, book->runtimes, book->labels, book->namer, book->profile);
	err = book->maker ? namer_read_files(book->namer) : -ENOMEM;
	if (!err)
		*ret_maker = book->maker;
	return err;
}

int stack_book_profile(struct stack_book *book, uint64_t unix_offset_ns)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < stack_book_nr_different(book); i++)
		err = profile_of_sample(book, sample_at(book, i), unix_offset_ns);
	return err;
}
