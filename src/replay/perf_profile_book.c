// SPDX-License-Identifier: Apache-2.0
#include "replay/perf_profile_book.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "abi/record.h"
#include "base/buffer.h"
#include "base/number.h"
#include "base/u64_map.h"

#define BOOK_BYTES_MAX ((size_t)8 << 30)
#define STACK_BYTES_MAX (1u << 20)

struct stack {
	uint32_t first, nr; /* of frames */
	uint32_t left_out;  /* how many frames of the leaf end stand before the gap; 0: there is none */
	uint32_t profile_stack;
	uint8_t stop;
	bool is_kernel;
};

struct perf_book {
	const struct process_table *processes;
	struct place_table *places, *kernel_places; /* apart, as the names of the kernel's may not be to be had */
	struct buffer frames, stacks, samples; /* uint32_t: places; struct stack; struct perf_sample */
	struct buffer scratch;                 /* the places of a stack that may be known */
	struct u64_map by_stack, by_sample;
};

struct perf_book *perf_book_new(const struct process_table *processes)
{
	struct perf_book *book = calloc(1, sizeof(*book));

	if (!book)
		return NULL;
	book->processes = processes;
	book->places = place_table_new();
	book->kernel_places = place_table_new();
	book->frames = book->stacks = book->samples = BUFFER_INIT(BOOK_BYTES_MAX);
	book->scratch = BUFFER_INIT(STACK_BYTES_MAX);
	if (book->places && book->kernel_places)
		return book;
	perf_book_free(book);
	return NULL;
}

void perf_book_free(struct perf_book *book)
{
	if (!book)
		return;
	place_table_free(book->places);
	place_table_free(book->kernel_places);
	buffer_done(&book->frames);
	buffer_done(&book->stacks);
	buffer_done(&book->samples);
	buffer_done(&book->scratch);
	u64_map_done(&book->by_stack);
	u64_map_done(&book->by_sample);
	free(book);
}

static struct stack *stack_at(const struct perf_book *book, uint32_t i)
{
	return (struct stack *)book->stacks.data + i;
}

static bool is_same_stack(const struct perf_book *book, const struct stack *a, const struct stack *b, const void *frames)
{
	return a->nr == b->nr && a->left_out == b->left_out && a->stop == b->stop && a->is_kernel == b->is_kernel &&
	       (!a->nr || !memcmp((const uint32_t *)book->frames.data + a->first, frames, a->nr * sizeof(uint32_t)));
}

/* The stack of the places in book->scratch. */
static int enter_stack(struct perf_book *book, struct stack stack, uint32_t *ret_stack)
{
	uint64_t key = hash_bytes(book->scratch.data, book->scratch.size, (uint64_t)stack.is_kernel << 32 | stack.left_out << 8 | stack.stop);
	uint32_t cursor = 0, *known, number = (uint32_t)(book->stacks.size / sizeof(stack));

	if (book->scratch.err)
		return book->scratch.err;
	stack.nr = (uint32_t)(book->scratch.size / sizeof(uint32_t));
	while ((known = u64_map_each(&book->by_stack, key, &cursor))) {
		if (is_same_stack(book, stack_at(book, *known), &stack, book->scratch.data)) {
			*ret_stack = *known;
			return 0;
		}
	}
	stack.first = (uint32_t)(book->frames.size / sizeof(uint32_t));
	stack.profile_stack = PROFILE_NONE;
	buffer_append(&book->frames, book->scratch.data, book->scratch.size);
	buffer_append(&book->stacks, &stack, sizeof(stack));
	if (book->frames.err || book->stacks.err || u64_map_add(&book->by_stack, key, number))
		return -ENOMEM;
	*ret_stack = number;
	return 0;
}

int perf_book_user(struct perf_book *book, uint32_t tgid, uint64_t time_ns, const uint64_t *frames, uint32_t nr_frames, uint32_t nr_walked, enum sonde_stop stop,
		   uint32_t *ret_stack)
{
	book->scratch.size = 0;
	for (uint32_t i = 0; i < nr_frames; i++) {
		uint32_t slot = nr_walked > nr_frames && i >= SONDE_LEAF_FRAMES ? sonde_frame_slot(nr_walked - nr_frames + i) : i;
		uint32_t place = place_user(book->places, book->processes, tgid, time_ns, frames[slot]);

		if (place == PLACE_NO_MEMORY)
			return -ENOMEM;
		buffer_append(&book->scratch, &place, sizeof(place));
	}
	return enter_stack(book, (struct stack){ .left_out = nr_walked > nr_frames ? SONDE_LEAF_FRAMES : 0, .stop = (uint8_t)stop }, ret_stack);
}

int perf_book_kernel(struct perf_book *book, const uint64_t *frames, uint32_t nr_frames, uint32_t *ret_stack)
{
	book->scratch.size = 0;
	for (uint32_t i = 0; i < nr_frames; i++) {
		uint32_t place = place_kernel(book->kernel_places, frames[i], i > 0, UINT64_MAX);

		if (place == PLACE_NO_MEMORY)
			return -ENOMEM;
		buffer_append(&book->scratch, &place, sizeof(place));
	}
	return enter_stack(book, (struct stack){ .is_kernel = true }, ret_stack);
}

bool perf_book_has_kernel(const struct perf_book *book)
{
	return place_nr(book->kernel_places);
}

static bool is_same_sample(const struct perf_sample *a, const struct perf_sample *b)
{
	return a->user_stack == b->user_stack && a->kernel_stack == b->kernel_stack && a->tgid == b->tgid && a->tid == b->tid && a->cpu == b->cpu && a->comm == b->comm &&
	       a->time_ns == b->time_ns;
}

static void add_values(struct perf_sample *to, const struct perf_sample *from)
{
	for (int i = 0; i < PROFILE_MAX_VALUES; i++)
		to->values[i] = number_sum(to->values[i], from->values[i]);
}

int perf_book_add(struct perf_book *book, const struct perf_sample *sample)
{
	const uint32_t words[] = { sample->user_stack, sample->kernel_stack, sample->tgid, sample->tid, sample->cpu, sample->comm };
	uint64_t key = hash_bytes(words, sizeof(words), 0);
	uint32_t cursor = 0, *known, number = (uint32_t)(book->samples.size / sizeof(*sample));

	while (!sample->time_ns && (known = u64_map_each(&book->by_sample, key, &cursor))) {
		struct perf_sample *other = (struct perf_sample *)book->samples.data + *known;

		if (is_same_sample(other, sample)) {
			add_values(other, sample);
			return 0;
		}
	}
	buffer_append(&book->samples, sample, sizeof(*sample));
	if (book->samples.err)
		return book->samples.err;
	return sample->time_ns ? 0 : u64_map_add(&book->by_sample, key, number);
}

/* --- the profile ------------------------------------------------------------------------------------------------------------------------- */

struct teller {
	struct perf_book *book;
	const struct perf_naming *naming;
	struct namer *namer, *kernel_namer;
	struct profile *profile;
	struct buffer locations; /* of the stack under way */
};

static void append(struct teller *teller, uint32_t location)
{
	if (location == PROFILE_NONE)
		teller->locations.err = -ENOMEM;
	buffer_append(&teller->locations, &location, sizeof(location));
}

/* A place in a kernel that is not the one that runs: named by its distance from where that kernel stood, so that it is the same after another start. */
static uint32_t unnamed_kernel(const struct teller *teller, const struct place *place)
{
	uint64_t base = place->pc >= teller->naming->kernel_base ? teller->naming->kernel_base : 0;
	struct profile_function function = { .system_name = PROFILE_EMPTY_STRING, .file = PROFILE_EMPTY_STRING };
	struct profile_location location = { .pc = place->pc, .mapping = PROFILE_NONE, .kind = FRAME_KERNEL };
	char name[64];

	snprintf(name, sizeof(name), "[kernel+0x%" PRIx64 "]", place->pc - base);
	function.name = profile_string(teller->profile, name);
	location.function = function.name == PROFILE_NONE ? PROFILE_NONE : profile_function(teller->profile, &function);
	return location.function == PROFILE_NONE ? PROFILE_NONE : profile_location(teller->profile, &location);
}

static int append_place(struct teller *teller, bool is_kernel, uint32_t place)
{
	const uint32_t *locations;
	uint32_t nr;

	if (is_kernel && !teller->naming->has_kernel) {
		append(teller, unnamed_kernel(teller, place_at(teller->book->kernel_places, place)));
		return teller->locations.err;
	}
	locations = namer_locations(is_kernel ? teller->kernel_namer : teller->namer, place, &nr);
	if (!locations)
		return -ENOMEM;
	buffer_append(&teller->locations, locations, nr * sizeof(*locations));
	return teller->locations.err;
}

static int tell_stack(struct teller *teller, uint32_t number, uint32_t *ret_stack)
{
	struct stack *stack = number == PERF_NO_STACK ? NULL : stack_at(teller->book, number);
	const uint32_t *frames = stack ? (const uint32_t *)teller->book->frames.data + stack->first : NULL;
	int err = 0;

	*ret_stack = stack ? stack->profile_stack : PROFILE_NONE;
	if (!stack || stack->profile_stack != PROFILE_NONE)
		return 0;
	teller->locations.size = 0;
	for (uint32_t i = 0; !err && i < stack->nr; i++) {
		if (stack->left_out && i == stack->left_out)
			append(teller, namer_cut(teller->namer));
		err = append_place(teller, stack->is_kernel, frames[i]);
	}
	if (!err && stack->stop != SONDE_STOP_COMPLETE)
		append(teller, namer_mark(teller->namer, stack->stop, stack->nr ? frames[stack->nr - 1] : PLACE_NO_MEMORY));
	if (err || teller->locations.err)
		return err ? err : teller->locations.err;
	stack->profile_stack = profile_stack(teller->profile, (const uint32_t *)teller->locations.data, (uint32_t)(teller->locations.size / sizeof(uint32_t)));
	*ret_stack = stack->profile_stack;
	return stack->profile_stack == PROFILE_NONE ? -ENOMEM : 0;
}

static int tell_sample(struct teller *teller, const struct perf_sample *from)
{
	struct profile_sample sample = {
		.tgid = from->tgid,
		.tid = from->tid,
		.cpu = from->cpu,
		.comm = from->comm,
		.time_ns = from->time_ns ? from->time_ns + teller->naming->unix_offset_ns : 0,
	};
	int err = tell_stack(teller, from->user_stack, &sample.user_stack);

	memcpy(sample.values, from->values, sizeof(sample.values));
	if (!err)
		err = tell_stack(teller, from->kernel_stack, &sample.kernel_stack);
	return err ? err : profile_add(teller->profile, &sample);
}

/* One namer for the program's places and one for the kernel's. */
static int make_namers(struct teller *teller, struct place_files **files, struct place_files **kernel_files)
{
	const struct place_files_parts parts = { .processes = teller->book->processes, .proxy = teller->naming->naming.proxy };

	*files = place_files_new(&parts, teller->book->places);
	*kernel_files = place_files_new(&parts, teller->book->kernel_places);
	if (!*files || !*kernel_files)
		return -ENOMEM;
	teller->namer = namer_new(teller->book->places, *files, &teller->naming->naming, teller->profile);
	teller->kernel_namer = namer_new(teller->book->kernel_places, *kernel_files, &teller->naming->naming, teller->profile);
	return teller->namer && teller->kernel_namer ? 0 : -ENOMEM;
}

int perf_book_profile(struct perf_book *book, const struct perf_naming *naming, struct profile *profile)
{
	struct place_files *files = NULL, *kernel_files = NULL;
	struct teller teller = { .book = book, .naming = naming, .profile = profile, .locations = BUFFER_INIT((size_t)256 << 20) };
	const struct perf_sample *samples = (const struct perf_sample *)book->samples.data;
	int err = make_namers(&teller, &files, &kernel_files);

	if (!err)
		err = namer_read_files(teller.namer);
	if (!err && naming->has_kernel)
		err = namer_read_files(teller.kernel_namer);
	for (size_t i = 0; !err && i < book->samples.size / sizeof(*samples); i++)
		err = tell_sample(&teller, &samples[i]);
	buffer_done(&teller.locations);
	namer_free(teller.namer);
	namer_free(teller.kernel_namer);
	place_files_free(files);
	place_files_free(kernel_files);
	return err;
}
