// SPDX-License-Identifier: Apache-2.0
#include "session/stack_book.h"

#include <errno.h>
#include <string.h>

#include "abi/record.h"
#include "base/buffer.h"
#include "base/u64_map.h"
#include "session/label_book.h"
#include "session/runtime_book.h"
#include "session/stack_merge.h"
#include "session/place.h"

#define PENDING_BYTES_MAX (256u << 20)
#define RAW_WAIT_NS 1000000000u /* a thread that has not gone on to its program by then has ended, or sleeps */
#define FRAMES_BYTES_MAX ((size_t)4 << 30)
#define STACK_BYTES_MAX (16u << 20) /* of one stack in the profile */

struct stack {
	uint64_t hash;
	uint32_t tgid;       /* 0: a kernel stack */
	uint32_t first, nr;  /* in stack_frames */
	uint32_t profile_stack;
	uint8_t stop;        /* enum sonde_stop */
	bool is_cut;         /* frames were left out behind the first SONDE_LEAF_FRAMES */
};

/* Where a stack comes from. */
struct stack_origin {
	uint32_t tgid;       /* 0: a kernel stack */
	uint64_t time_ns;    /* when it was so */
	uint64_t known_ns;   /* up to when the mappings that it was walked with were true; 0: they are those of time_ns */
};

/* Equal samples but for their number. Zeroed before it is filled: it is hashed and compared whole. */
struct sample_key {
	uint64_t user_stack, kernel_stack, runtime_stack, labels;
	uint32_t tgid, tid, cpu;
	uint8_t user_side, kernel_side, runtime_side, labels_side;
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
	struct buffer pending;      /* records that were not looked up yet: stacks, and samples whose stack came raw; each at a multiple of 8 */
	struct buffer stack_frames; /* uint32_t each: numbers of places, leaf first */
	struct buffer stacks;       /* struct stack each */
	struct buffer samples;      /* struct sample each */
	struct buffer used;         /* uint32_t each: samples that came since the walker was told what was used */
	struct u64_map stack_by_hash, sample_by_key;
	struct buffer waiting;      /* samples whose raw stacks have not come yet */
	uint64_t newest_ns;         /* of the samples that waited */
	struct u64_map raw_stacks;  /* id of a raw record -> its stack, until its sample comes */
	struct place_table *places;
	struct runtime_book *runtimes;
	struct label_book *labels;
	struct u64_map merged;      /* hash of a user stack and its runtime stack -> stack of the profile */
	struct profile *profile;
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
	book->stack_frames = book->stacks = book->samples = book->used = BUFFER_INIT(FRAMES_BYTES_MAX);
	book->profile = profile;
	book->places = place_table_new();
	book->runtimes = runtime_book_new();
	book->labels = label_book_new();
	if (!book->places || !book->runtimes || !book->labels) {
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
	buffer_done(&book->stack_frames);
	buffer_done(&book->stacks);
	buffer_done(&book->samples);
	buffer_done(&book->used);
	u64_map_done(&book->stack_by_hash);
	u64_map_done(&book->sample_by_key);
	u64_map_done(&book->raw_stacks);
	u64_map_done(&book->merged);
	place_table_free(book->places);
	runtime_book_free(book->runtimes);
	label_book_free(book->labels);
	free(book);
}

uint64_t stack_book_nr_samples(const struct stack_book *book)
{
	return book->nr_samples;
}

const struct place_table *stack_book_places(const struct stack_book *book)
{
	return book->places;
}

static struct stack *stack_at(const struct stack_book *book, uint32_t i)
{
	return (struct stack *)book->stacks.data + i;
}

static struct sample *sample_at(const struct stack_book *book, uint32_t i)
{
	return (struct sample *)book->samples.data + i;
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

static int add_sample(struct stack_book *book, const struct sonde_sample_record *record)
{
	struct sample_key key = { 0 };
	struct sample fresh = { .count = 1 };
	uint32_t cursor = 0, *known, number;
	uint64_t hash;

	/* without a body the hash says nothing: a full store must not make every sample one of its own */
	key.user_stack = record->user_side == SONDE_SIDE_STORED ? record->user_stack : 0;
	key.kernel_stack = record->kernel_side == SONDE_SIDE_STORED ? record->kernel_stack : 0;
	key.runtime_stack = record->runtime_side == SONDE_SIDE_STORED ? record->runtime_stack : 0;
	key.labels = record->labels_side == SONDE_SIDE_STORED ? record->labels : 0;
	key.runtime_side = record->runtime_side;
	key.labels_side = record->labels_side;
	key.tgid = record->tgid;
	key.tid = record->tid;
	key.cpu = record->cpu;
	key.time_ns = book->with_times ? record->time_ns : 0;
	key.user_side = record->user_side;
	key.kernel_side = record->kernel_side;
	memcpy(key.comm, record->comm, sizeof(key.comm));
	key.comm[sizeof(key.comm) - 1] = '\0';
	book->nr_samples++;
	hash = hash_bytes(&key, sizeof(key), 0);
	while ((known = u64_map_each(&book->sample_by_key, hash, &cursor))) {
		if (!memcmp(&sample_at(book, *known)->key, &key, sizeof(key))) {
			sample_at(book, *known)->count++;
			return note_use(book, *known, record->time_ns);
		}
	}
	fresh.key = key;
	number = (uint32_t)(book->samples.size / sizeof(fresh));
	buffer_append(&book->samples, &fresh, sizeof(fresh));
	if (book->samples.err || u64_map_add(&book->sample_by_key, hash, number))
		return -ENOMEM;
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
	return sizeof(struct sonde_sample_record);
}

int stack_book_record(struct stack_book *book, const void *record)
{
	static const char zero[8];
	const struct sonde_sample_record *sample = record;
	size_t size = record_bytes(record);

	if (sample->type == SONDE_RECORD_SAMPLE && sample->user_side != SONDE_SIDE_RAW)
		return add_sample(book, record);
	buffer_append(&book->pending, record, size);
	buffer_append(&book->pending, zero, -size % sizeof(zero)); /* so that the next one is aligned */
	return book->pending.err ? -ENOMEM : 0;
}

/* Is what stood at `pc` when the stack was walked what the walk was told stands there? The process may have mapped another file since. */
static bool is_stale(const struct process_table *processes, const struct stack_origin *origin, uint64_t frame)
{
	uint64_t pc = (frame & ~SONDE_FRAME_RETURN) - (frame >> 63);
	const struct process_mapping *told, *now;

	if (!origin->known_ns || origin->known_ns >= origin->time_ns)
		return false;
	told = process_table_find(processes, origin->tgid, origin->known_ns, pc);
	now = process_table_find(processes, origin->tgid, origin->time_ns, pc);
	return told && now && (told->object != now->object || told->load_bias != now->load_bias);
}

/* The number of the place of the i-th kept frame, root end unrolled. */
static uint64_t kept_frame(const struct raw_stack *from, uint32_t i)
{
	if (from->nr_walked > from->nr_frames && i >= SONDE_LEAF_FRAMES)
		i = sonde_frame_slot(from->nr_walked - from->nr_frames + i);
	return from->frames[i];
}

/* *ret_number: the stack's; an old one when it came before. */
static int add_stack(struct stack_book *book, const struct stack_origin *origin, const struct raw_stack *from, const struct process_table *processes,
		     uint32_t *ret_number)
{
	struct stack stack = {
		.hash = from->hash,
		.tgid = origin->tgid,
		.first = (uint32_t)(book->stack_frames.size / sizeof(uint32_t)),
		.profile_stack = PROFILE_NONE,
		.is_cut = from->nr_walked > from->nr_frames,
		.stop = (uint8_t)from->stop,
	};
	const uint32_t *known = u64_map_find(&book->stack_by_hash, from->hash);

	*ret_number = known ? *known : (uint32_t)(book->stacks.size / sizeof(stack));
	if (known)
		return 0; /* sent again: the same */
	while (stack.nr < from->nr_frames && stack.stop != SONDE_STOP_STALE) {
		uint64_t frame = kept_frame(from, stack.nr);
		uint32_t place = origin->tgid ? place_user(book->places, processes, origin->tgid, origin->time_ns, frame) : place_kernel(book->places, frame, stack.nr > 0);

		if (place == PLACE_NO_MEMORY)
			return -ENOMEM;
		buffer_append(&book->stack_frames, &place, sizeof(place));
		stack.nr++;
		if (is_stale(processes, origin, frame)) /* where its rows led cannot be believed */
			stack.stop = SONDE_STOP_STALE;
	}
	stack.is_cut = stack.is_cut && stack.nr > SONDE_LEAF_FRAMES;
	buffer_append(&book->stacks, &stack, sizeof(stack));
	if (book->stack_frames.err || book->stacks.err)
		return -ENOMEM;
	return u64_map_add(&book->stack_by_hash, from->hash, *ret_number);
}

static int resolve_stack(struct stack_book *book, const struct sonde_stack_record *record, const struct process_table *processes)
{
	const struct stack_origin origin = { .tgid = record->tgid, .time_ns = record->time_ns, .known_ns = record->known_ns };
	const struct raw_stack stack = { .frames = (const uint64_t *)(record + 1), .hash = record->hash, .nr_walked = record->nr_walked, .nr_frames = record->nr_frames,
					 .stop = record->stop };
	uint32_t number;

	return add_stack(book, &origin, &stack, processes, &number);
}

static int resolve_raw(struct stack_book *book, const struct sonde_raw_record *record, const struct process_table *processes, const struct stack_walker *walker)
{
	const struct stack_origin origin = { .tgid = record->tgid, .time_ns = record->time_ns };
	struct raw_stack stack;
	uint32_t number;
	int err = walker->walk(walker->arg, record, &stack);

	if (!err)
		err = add_stack(book, &origin, &stack, processes, &number);
	return err ? err : u64_map_add(&book->raw_stacks, record->id, number);
}

static int resolve_audit(struct stack_book *book, const struct sonde_raw_record *record, const struct stack_walker *walker)
{
	const uint32_t *number = u64_map_find(&book->stack_by_hash, record->id);
	const struct stack *stack = number ? stack_at(book, *number) : NULL;

	return walker->check(walker->arg, record, book->places, stack ? (const uint32_t *)book->stack_frames.data + stack->first : NULL, stack ? stack->nr : 0,
			     stack ? stack->stop : SONDE_STOP_COMPLETE);
}

/* A sample whose stack came raw: by now it has a hash. */
static int resolve_sample(struct stack_book *book, const struct sonde_sample_record *record)
{
	const uint32_t *number = u64_map_find(&book->raw_stacks, record->user_stack);
	struct sonde_sample_record sample = *record;

	if (record->time_ns > book->newest_ns)
		book->newest_ns = record->time_ns;
	if (!number && book->newest_ns - record->time_ns < RAW_WAIT_NS) { /* one that the thread itself has to send */
		buffer_append(&book->waiting, record, sizeof(*record));
		return book->waiting.err;
	}
	sample.user_side = number ? SONDE_SIDE_STORED : SONDE_SIDE_LOST;
	if (number) {
		sample.user_stack = stack_at(book, *number)->hash;
		u64_map_remove(&book->raw_stacks, record->user_stack, *number);
	}
	return add_sample(book, &sample);
}

/* Which files a stack came to, and which one's table it ended without. */
static int tell_stack_used(struct stack_book *book, const struct stack *stack, uint64_t time_ns, const struct stack_walker *walker)
{
	const uint32_t *frames = (const uint32_t *)book->stack_frames.data + stack->first;
	uint32_t object = OBJECT_NONE;

	for (uint32_t i = 0; i < stack->nr; i++) {
		object = place_at(book->places, frames[i])->object;
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
		const uint32_t *number = sample->key.user_side == SONDE_SIDE_STORED ? u64_map_find(&book->stack_by_hash, sample->key.user_stack) : NULL;

		sample->is_used = false;
		if (number && walker->used)
			err = tell_stack_used(book, stack_at(book, *number), sample->newest_ns, walker);
	}
	book->used.size = 0;
	return err;
}

int stack_book_resolve(struct stack_book *book, const struct process_table *processes, const struct stack_walker *walker)
{
	int err = tell_used(book, walker);

	for (size_t off = 0; !err && off < book->pending.size;) {
		const void *record = book->pending.data + off;
		uint32_t type = *(const uint32_t *)record;

		if (type == SONDE_RECORD_STACK)
			err = resolve_stack(book, record, processes);
		else if (type == SONDE_RECORD_RUNTIME)
			err = runtime_book_record(book->runtimes, record, walker, book->profile);
		else if (type == SONDE_RECORD_LABELS)
			err = label_book_record(book->labels, record, walker);
		else if (type == SONDE_RECORD_RAW)
			err = ((const struct sonde_raw_record *)record)->use == SONDE_RAW_WALK ? resolve_raw(book, record, processes, walker) :
												 resolve_audit(book, record, walker);
		else
			err = resolve_sample(book, record);
		off += (record_bytes(record) + 7) / 8 * 8;
	}
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
		err = resolve_sample(book, (const void *)(book->pending.data + off));
	book->pending.size = 0;
	return err;
}

/* A stack that is put together. */
struct making {
	const struct stack_book *book;
	const struct stack *stack;
	struct namer *namer;
	struct buffer locations;
};

static int append_location(struct making *making, uint32_t location)
{
	if (location == PROFILE_NONE)
		return -ENOMEM;
	buffer_append(&making->locations, &location, sizeof(location));
	return making->locations.err;
}

static int append_native(void *arg, uint32_t number)
{
	struct making *making = arg;
	const uint32_t *frames = (const uint32_t *)making->book->stack_frames.data + making->stack->first, *of_frame;
	uint32_t nr, mark;
	int err = making->stack->is_cut && number == SONDE_LEAF_FRAMES ? append_location(making, namer_cut(making->namer)) : 0;

	if (!err && namer_has_runtime_mark(making->namer, frames[number], &mark))
		err = append_location(making, mark);
	if (err)
		return err;
	of_frame = namer_locations(making->namer, frames[number], &nr);
	if (!of_frame)
		return -ENOMEM;
	buffer_append(&making->locations, of_frame, nr * sizeof(*of_frame));
	return making->locations.err;
}

/* A mark, when the stack was not walked to the root, or something follows that does not stand on it. */
static int append_end(void *arg, bool has_more)
{
	struct making *making = arg;
	const struct stack *stack = making->stack;
	const uint32_t *frames = (const uint32_t *)making->book->stack_frames.data + stack->first;

	if (stack->stop == SONDE_STOP_COMPLETE)
		return has_more ? append_location(making, namer_no_natives(making->namer)) : 0;
	return append_location(making, namer_mark(making->namer, stack->stop, stack->nr ? frames[stack->nr - 1] : PLACE_NO_MEMORY));
}

static int append_item(void *arg, uint32_t location)
{
	return append_location(arg, location);
}

/* The stack as the profile has it, with what interpreters ran. */
static int make_stack(struct stack_book *book, const struct stack *stack, const struct runtime_stack *runtime, struct namer *namer, uint32_t *ret_stack)
{
	struct making making = { .book = book, .stack = stack, .namer = namer, .locations = BUFFER_INIT(STACK_BYTES_MAX) };
	const struct stack_merge_sink sink = { .native = append_native, .end = append_end, .item = append_item, .arg = &making };
	int err = stack_merge(stack->nr, runtime, &sink);

	if (!err)
		*ret_stack = profile_stack(book->profile, (const uint32_t *)making.locations.data, (uint32_t)(making.locations.size / sizeof(uint32_t)));
	buffer_done(&making.locations);
	return err ? err : *ret_stack == PROFILE_NONE ? -ENOMEM : 0;
}

static int profile_of_native(struct stack_book *book, struct stack *stack, struct namer *namer, uint32_t *ret_stack)
{
	int err = 0;

	if (stack->profile_stack == PROFILE_NONE)
		err = make_stack(book, stack, &(struct runtime_stack){ 0 }, namer, &stack->profile_stack);
	*ret_stack = stack->profile_stack;
	return err;
}

/* The same with a runtime stack, each pair of them once. */
static int profile_of_both(struct stack_book *book, struct stack *stack, const struct sample *sample, struct namer *namer, uint32_t *ret_stack)
{
	const uint64_t both[] = { sample->key.user_stack, sample->key.runtime_stack };
	uint64_t key = hash_bytes(both, sizeof(both), 0);
	const uint32_t *known = u64_map_find(&book->merged, key);
	struct account *account = profile_account(book->profile);
	struct runtime_stack runtime;
	int err;

	if (!runtime_book_find(book->runtimes, sample->key.runtime_stack, &runtime)) { /* its body was lost */
		account->runtime_missed += sample->count;
		return profile_of_native(book, stack, namer, ret_stack);
	}
	if (runtime.stop < SONDE_RUNTIME_STOP_COUNT)
		account->runtime_stopped[runtime.stop] += sample->count;
	if (known) {
		*ret_stack = *known;
		return 0;
	}
	err = make_stack(book, stack, &runtime, namer, ret_stack);
	return err ? err : u64_map_add(&book->merged, key, *ret_stack);
}

/* What stands for a side that is not known. */
static int profile_of_missed(struct stack_book *book, uint8_t side, bool kernel, struct namer *namer, uint64_t count, uint32_t *ret_stack)
{
	struct account *account = profile_account(book->profile);
	uint32_t location = namer_missed(namer, kernel);

	*(kernel ? &account->missed_kernel : &account->missed_user) += count;
	if (side == SONDE_SIDE_FULL)
		account->missed_full += count;
	*ret_stack = location == PROFILE_NONE ? PROFILE_NONE : profile_stack(book->profile, &location, 1);
	return *ret_stack == PROFILE_NONE ? -ENOMEM : 0;
}

static int profile_of_user(struct stack_book *book, const struct sample *sample, struct namer *namer, uint32_t *ret_stack)
{
	const struct sample_key *key = &sample->key;
	const uint32_t *known = key->user_side == SONDE_SIDE_STORED ? u64_map_find(&book->stack_by_hash, key->user_stack) : NULL;
	struct account *account = profile_account(book->profile);
	struct stack *stack = known ? stack_at(book, *known) : NULL;

	if (key->runtime_side == SONDE_SIDE_FULL || key->runtime_side == SONDE_SIDE_LOST || (!stack && key->runtime_side == SONDE_SIDE_STORED))
		account->runtime_missed += sample->count;
	if (!stack)
		return profile_of_missed(book, key->user_side, false, namer, sample->count, ret_stack);
	if (stack->stop < SONDE_STOP_COUNT)
		account->stopped[stack->stop] += sample->count;
	return key->runtime_side == SONDE_SIDE_STORED ? profile_of_both(book, stack, sample, namer, ret_stack) : profile_of_native(book, stack, namer, ret_stack);
}

static int profile_of_kernel(struct stack_book *book, const struct sample *sample, struct namer *namer, uint32_t *ret_stack)
{
	const uint32_t *known = sample->key.kernel_side == SONDE_SIDE_STORED ? u64_map_find(&book->stack_by_hash, sample->key.kernel_stack) : NULL;

	return known ? profile_of_native(book, stack_at(book, *known), namer, ret_stack) :
		       profile_of_missed(book, sample->key.kernel_side, true, namer, sample->count, ret_stack);
}

/* The number in the profile; PROFILE_NONE: no memory. */
static uint32_t profile_of_labels(struct stack_book *book, const struct sample *sample)
{
	uint32_t labels = sample->key.labels_side == SONDE_SIDE_STORED ? label_book_labels(book->labels, sample->key.labels, book->profile) : PROFILE_NO_LABELS;

	if (sample->key.labels_side != SONDE_SIDE_NONE && labels == PROFILE_NO_LABELS)
		profile_account(book->profile)->labels_missed += sample->count;
	return labels;
}

static int profile_of_sample(struct stack_book *book, const struct sample *from, uint64_t unix_offset_ns, struct namer *namer)
{
	struct profile_sample sample = {
		.user_stack = PROFILE_NONE,
		.kernel_stack = PROFILE_NONE,
		.tgid = from->key.tgid,
		.tid = from->key.tid,
		.cpu = from->key.cpu,
		.comm = profile_string(book->profile, from->key.comm),
		.labels = profile_of_labels(book, from),
		.time_ns = from->key.time_ns ? from->key.time_ns + unix_offset_ns : 0,
		.values = { from->count > INT64_MAX ? INT64_MAX : (int64_t)from->count },
	};
	int err = from->key.user_side == SONDE_SIDE_NONE ? 0 : profile_of_user(book, from, namer, &sample.user_stack);

	if (!err && from->key.kernel_side != SONDE_SIDE_NONE)
		err = profile_of_kernel(book, from, namer, &sample.kernel_stack);
	if (!err && (sample.comm == PROFILE_NONE || sample.labels == PROFILE_NONE))
		err = -ENOMEM;
	return err ? err : profile_add(book->profile, &sample);
}

int stack_book_profile(struct stack_book *book, const struct process_table *processes, const struct naming *naming, uint64_t unix_offset_ns)
{
	struct namer *namer = namer_new(book->places, processes, naming, book->profile);
	int err = namer ? give_up_waiting(book) : -ENOMEM;
	size_t nr_samples = book->samples.size / sizeof(struct sample);

	if (!err)
		err = namer_read_files(namer);
	for (uint32_t i = 0; !err && i < nr_samples; i++)
		err = profile_of_sample(book, sample_at(book, i), unix_offset_ns, namer);
	namer_free(namer);
	return err;
}
