// SPDX-License-Identifier: Apache-2.0
#include "stacks/stack_book.h"

#include <errno.h>
#include <string.h>

#include "abi/record.h"
#include "base/buffer.h"
#include "collect/record.h"

#define PENDING_BYTES_MAX (256u << 20)
#define RAW_WAIT_NS 1000000000u /* a thread that has not gone on to its program by then has ended, or sleeps */
#define USED_BYTES_MAX ((size_t)1 << 30)

/* A store, and who needs it still. */
struct kept_store {
	struct stack_store *store;
	struct kept_store *next;
	bool is_read;           /* its window is being named */
};

struct stack_book {
	struct buffer pending;      /* records of this reading, and samples that wait for their raw stacks; each at a multiple of 8 */
	struct buffer waiting;      /* samples whose raw stacks have not come yet, or whose window has not begun yet */
	struct buffer used;         /* struct used each: samples that came since the walker was told what was used */
	struct samples *samples;    /* of the open window */
	struct samples *cut;        /* of the one that was cut and is not closed yet; NULL: there is none */
	uint64_t border_ns;         /* between the two, or at which it will be cut; UINT64_MAX: that is not told yet */
	struct kept_store *stores;  /* the youngest first: the open window's, the one before, those that are being named */
	struct stack_store *next;   /* of the next window, while one is cut: what goes on is in it already; NULL: it is not made yet */
	uint64_t newest_ns;         /* of the samples that waited, and of the borders */
	uint64_t nr_samples;
	struct account *account;
	bool with_times;
};

struct used {
	struct samples *samples;
	uint32_t number;
};

static int push_store(struct stack_book *book, struct stack_store *store)
{
	struct kept_store *kept = store ? calloc(1, sizeof(*kept)) : NULL;

	if (!kept)
		return -ENOMEM;
	*kept = (struct kept_store){ .store = store, .next = book->stores };
	book->stores = kept;
	return 0;
}

struct stack_book *stack_book_new(bool with_times, struct account *account)
{
	struct stack_book *book = calloc(1, sizeof(*book));
	struct stack_store *store = stack_store_new();

	if (book) {
		book->with_times = with_times;
		book->border_ns = UINT64_MAX;
		book->pending = book->waiting = BUFFER_INIT(PENDING_BYTES_MAX);
		book->used = BUFFER_INIT(USED_BYTES_MAX);
		book->account = account;
		book->samples = samples_new();
	}
	if (book && book->samples && !push_store(book, store))
		return book;
	stack_store_free(store, NULL);
	stack_book_free(book, NULL);
	return NULL;
}

void stack_book_free(struct stack_book *book, const struct process_table *processes)
{
	struct kept_store *next;

	if (!book)
		return;
	for (struct kept_store *kept = book->stores; kept; kept = next) {
		next = kept->next;
		stack_store_free(kept->store, processes);
		free(kept);
	}
	stack_store_free(book->next, processes);
	buffer_done(&book->pending);
	buffer_done(&book->waiting);
	buffer_done(&book->used);
	samples_free(book->samples);
	samples_free(book->cut);
	free(book);
}

static struct stack_store *open_store(const struct stack_book *book)
{
	return book->stores->store;
}

/* NULL: this is the first. */
static struct stack_store *store_before(const struct stack_book *book)
{
	return book->stores->next ? book->stores->next->store : NULL;
}

size_t stack_book_bytes(const struct stack_book *book)
{
	return stack_store_bytes(open_store(book)) + samples_bytes(book->samples);
}

uint64_t stack_book_nr_samples(const struct stack_book *book)
{
	return book->nr_samples;
}

const struct stack_store *stack_book_store(const struct stack_book *book)
{
	return open_store(book);
}

static int note_use(struct stack_book *book, struct samples *samples, uint32_t number, uint64_t time_ns)
{
	const struct used used = { .samples = samples, .number = number };

	if (samples_use(samples, number, time_ns))
		buffer_append(&book->used, &used, sizeof(used));
	return book->used.err;
}

/* Of the window that its time lies in. */
static int add_sample(struct stack_book *book, const struct sonde_sample_record *record, uint32_t user_generation, const struct process_table *processes)
{
	struct samples *samples = book->cut && record->time_ns < book->border_ns ? book->cut : book->samples;
	struct sample_key key = { 0 };
	uint32_t number;
	int err;

	key.sides = (struct stack_sides){ .ids = known_ids(&record->ids), .tgid = record->tgid, .user_generation = user_generation };
	key.tid = record->tid;
	key.cpu = record->cpu;
	key.time_ns = book->with_times ? record->time_ns : 0;
	memcpy(key.comm, record->comm, sizeof(key.comm));
	key.comm[sizeof(key.comm) - 1] = '\0';
	book->nr_samples++;
	number = samples_add(samples, &key);
	if (number == SAMPLES_NO_MEMORY)
		return -ENOMEM;
	err = samples_at(samples, number)->count > 1 ? 0 : stack_store_keep(open_store(book), store_before(book), &key.sides, processes);
	return err ? err : note_use(book, samples, number, record->time_ns);
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

	return stack_table_add(open_store(book)->stacks, &origin, &stack, processes, &made);
}

static int resolve_raw(struct stack_book *book, const struct sonde_raw_record *record, const struct process_table *processes, const struct stack_walker *walker)
{
	struct stack_origin origin = { .tgid = record->tgid, .time_ns = record->time_ns };
	struct raw_stack stack;
	struct stack *made = NULL;
	int err = walker->walk(walker->arg, record, &stack);

	origin.generation = err ? 0 : stack.generation;
	if (!err)
		err = stack_table_add(open_store(book)->stacks, &origin, &stack, processes, &made);
	if (err)
		return err;
	if (stack_owner_is(&made->owner, origin.tgid, origin.generation))
		return stack_table_add_raw(open_store(book)->stacks, record->id, made);
	book->account->missed_collided++; /* the sample finds none */
	return 0;
}

static int resolve_audit(struct stack_book *book, const struct sonde_raw_record *record, const struct stack_walker *walker)
{
	const struct stack_table *stacks = open_store(book)->stacks;
	const struct stack *stack = stack_table_find(stacks, record->id);

	if (stack && stack->owner.tgid != record->tgid)
		stack = NULL;
	return walker->check(walker->arg, record, stack_table_places(stacks), stack ? stack_table_frames(stacks, stack) : NULL, stack ? stack->nr : 0,
			     stack ? stack->stop : SONDE_STOP_COMPLETE);
}

/* A sample whose stack has a hash. Until the kernel side is told that another file is mapped there, it goes on to give stacks through that the hashes that they had. */
static int resolve_stored(struct stack_book *book, const struct sonde_sample_record *record, const struct process_table *processes)
{
	const uint64_t end_ns = record->generation ? process_table_generation_end(processes, record->tgid, record->generation) : UINT64_MAX;
	const struct stack_sides sides = { .user_stack = record->user_stack, .user_side = record->user_side };
	struct sonde_sample_record sample = *record;
	const struct stack *stack;
	int err;

	if (record->time_ns < end_ns || record->user_side != SONDE_SIDE_STORED)
		return add_sample(book, record, record->generation, processes);
	err = stack_store_keep(open_store(book), store_before(book), &sides, processes);
	stack = err ? NULL : stack_table_find(open_store(book)->stacks, record->user_stack);
	if (stack && stack_owner_is(&stack->owner, record->tgid, record->generation)) {
		const struct stack_origin origin = { .tgid = record->tgid, .generation = record->generation, .time_ns = record->time_ns, .known_ns = end_ns - 1 };

		err = stack_table_add_later(open_store(book)->stacks, stack, &origin, processes, &stack);
		sample.user_stack = stack->hash;
	}
	return err ? err : add_sample(book, &sample, sample.generation, processes);
}

/* A sample whose stack came raw: by now it has a hash. */
static int resolve_raw_sample(struct stack_book *book, const struct sonde_sample_record *record, const struct process_table *processes)
{
	const struct stack_sides sides = { .user_stack = record->user_stack, .user_side = SONDE_SIDE_RAW };
	struct sonde_sample_record sample = *record;
	const struct stack *stack;
	int err = stack_store_keep(open_store(book), store_before(book), &sides, processes);

	if (err)
		return err;
	stack = stack_table_find_raw(open_store(book)->stacks, record->user_stack);
	if (record->time_ns > book->newest_ns)
		book->newest_ns = record->time_ns;
	if (stack && stack->owner.tgid != record->tgid) {
		book->account->missed_collided++;
		stack = NULL;
	}
	if (!stack && book->newest_ns - record->time_ns < RAW_WAIT_NS) { /* one that the thread itself has to send */
		buffer_append(&book->waiting, record, sizeof(*record));
		return book->waiting.err;
	}
	sample.user_side = stack ? SONDE_SIDE_STORED : SONDE_SIDE_LOST;
	if (stack) {
		sample.user_stack = stack->hash;
		stack_table_forget_raw(open_store(book)->stacks, record->user_stack);
	}
	return add_sample(book, &sample, stack ? stack->owner.generation : 0, processes);
}

static int resolve_sample(struct stack_book *book, const struct sonde_sample_record *record, const struct process_table *processes)
{
	if (!book->cut && record->time_ns >= book->border_ns) { /* of the window behind the border, which has not begun */
		buffer_append(&book->waiting, record, sizeof(*record));
		return book->waiting.err;
	}
	return record->user_side == SONDE_SIDE_RAW ? resolve_raw_sample(book, record, processes) : resolve_stored(book, record, processes);
}

/* Which files a stack came to, and which one's table it ended without. */
static int tell_stack_used(struct stack_book *book, const struct stack *stack, uint64_t time_ns, const struct stack_walker *walker)
{
	const struct stack_table *stacks = open_store(book)->stacks;
	const uint32_t *frames = stack_table_frames(stacks, stack);
	uint32_t object = OBJECT_NONE;

	for (uint32_t i = 0; i < stack->nr; i++) {
		object = place_at(stack_table_places(stacks), frames[i])->object;
		if (object != OBJECT_NONE)
			walker->used(walker->arg, object, time_ns);
	}
	return stack->stop == SONDE_STOP_NOT_LOADED && object != OBJECT_NONE ? walker->need(walker->arg, object, time_ns) : 0;
}

/* Of all stacks that were sampled since. */
static int tell_used(struct stack_book *book, const struct stack_walker *walker)
{
	const struct used *used = (const struct used *)book->used.data;
	int err = 0;

	for (size_t i = 0; !err && i < book->used.size / sizeof(*used); i++) {
		const struct sample *sample = samples_told(used[i].samples, used[i].number);
		const struct stack *stack = sample->key.sides.user_side == SONDE_SIDE_STORED ? stack_table_find(open_store(book)->stacks, sample->key.sides.user_stack) : NULL;

		if (stack && walker->used)
			err = tell_stack_used(book, stack, sample->newest_ns, walker);
	}
	book->used.size = 0;
	return err;
}

static int resolve(struct stack_book *book, const void *record, const struct process_table *processes, const struct stack_walker *walker)
{
	const struct stack_store *store = open_store(book), *before = store_before(book);

	switch (*(const uint32_t *)record) {
	case SONDE_RECORD_STACK:
		return resolve_stack(book, record, processes);
	case SONDE_RECORD_RUNTIME:
		return runtime_book_record(store->runtimes, record, walker, before ? before->runtimes : NULL);
	case SONDE_RECORD_CODE:
		runtime_book_code(store->runtimes, record);
		return 0;
	case SONDE_RECORD_LABELS:
		return label_book_record(store->labels, record, walker);
	case SONDE_RECORD_WAKER:
		return waker_book_record(store->wakers, record);
	case SONDE_RECORD_RAW:
		return ((const struct sonde_raw_record *)record)->use == SONDE_RAW_AUDIT ? resolve_audit(book, record, walker) : resolve_raw(book, record, processes, walker);
	case SONDE_RECORD_SAMPLE:
		return resolve_sample(book, record, processes);
	default:
		return -EBADMSG;
	}
}

int stack_book_resolve(struct stack_book *book, const struct process_table *processes, const struct stack_walker *walker)
{
	int err = 0;

	for (size_t off = 0; !err && off < book->pending.size;) {
		const void *record = book->pending.data + off;

		err = resolve(book, record, processes, walker);
		off += (record_bytes(record) + 7) / 8 * 8;
	}
	if (!err)
		err = tell_used(book, walker);
	if (!err)
		err = runtime_book_ask_again(open_store(book)->runtimes, walker);
	book->pending.size = 0;
	buffer_append(&book->pending, book->waiting.data, book->waiting.size);
	book->waiting.size = 0;
	return err ? err : book->pending.err;
}

int stack_book_give_up(struct stack_book *book, const struct process_table *processes)
{
	int err = 0;

	book->newest_ns = book->border_ns = UINT64_MAX;
	for (size_t off = 0; !err && off < book->pending.size; off += sizeof(struct sonde_sample_record))
		err = resolve_sample(book, (const void *)(book->pending.data + off), processes);
	book->pending.size = book->used.size = 0;
	return err;
}

/* --- windows ----------------------------------------------------------------------------------------------------------------------------- */

void stack_book_tell_border(struct stack_book *book, uint64_t border_ns)
{
	book->border_ns = border_ns;
}

int stack_book_cut(struct stack_book *book, uint64_t border_ns)
{
	struct samples *samples = samples_new();

	book->next = samples ? stack_store_new() : NULL;
	if (!book->next) {
		samples_free(samples);
		return -ENOMEM;
	}
	book->cut = book->samples;
	book->samples = samples;
	book->border_ns = border_ns;
	if (border_ns != UINT64_MAX && border_ns > book->newest_ns) /* who waits longer than RAW_WAIT_NS outlives the bodies that it names */
		book->newest_ns = border_ns;
	return 0;
}

int stack_book_keep(struct stack_book *book, const struct stack_sides *sides, uint64_t waker, const struct process_table *processes)
{
	int err = stack_store_keep(open_store(book), store_before(book), sides, processes);

	return err ? err : stack_store_keep_waker(open_store(book), store_before(book), waker, processes);
}

int stack_book_keep_on(struct stack_book *book, const struct stack_sides *sides, uint64_t waker, const struct process_table *processes)
{
	int err = stack_store_keep(book->next, open_store(book), sides, processes);

	return err ? err : stack_store_keep_waker(book->next, open_store(book), waker, processes);
}

/* Those that nobody names any more. */
static void sweep(struct stack_book *book, const struct process_table *processes)
{
	struct kept_store **link = book->stores->next ? &book->stores->next->next : &book->stores->next, *kept;

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

int stack_book_close(struct stack_book *book, const struct process_table *processes, struct closed_window *ret_window)
{
	struct kept_store *closed = book->stores;
	int err = 0;

	for (uint32_t i = 0; !err && i < samples_nr(book->samples); i++)
		err = stack_store_keep(book->next, closed->store, &samples_at(book->samples, i)->key.sides, processes);
	if (!err)
		err = push_store(book, book->next);
	if (err)
		return err;
	*ret_window = (struct closed_window){ .store = closed->store, .samples = MOVE(book->cut) };
	book->next = NULL;
	book->border_ns = UINT64_MAX;
	closed->is_read = true;
	sweep(book, processes);
	return 0;
}

void stack_book_done(struct stack_book *book, const struct stack_store *store, const struct process_table *processes)
{
	for (struct kept_store *kept = book->stores; kept; kept = kept->next) {
		if (kept->store == store)
			kept->is_read = false;
	}
	sweep(book, processes);
}
