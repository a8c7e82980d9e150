// SPDX-License-Identifier: Apache-2.0
#include "session/runtime_book.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/interned.h"
#include "runtime/runtime.h"

#define ITEMS_BYTES_MAX ((size_t)1 << 30)

/* What makes a frame the same as one before. Has no padding. */
struct frame_key {
	uint64_t code, where;
	uint32_t cookie, tgid;
	uint32_t runtime, generation;
};

struct named_frame {
	struct frame_key key;
	uint32_t location;
};

struct kept_stack {
	uint32_t first, nr; /* of `items` */
	uint8_t stop;
};

struct runtime_book {
	struct buffer items;  /* struct runtime_item each */
	struct buffer stacks; /* struct kept_stack each */
	struct u64_map stack_by_hash;
	struct interned frames; /* of struct named_frame */
};

struct runtime_book *runtime_book_new(void)
{
	struct runtime_book *book = calloc(1, sizeof(*book));

	if (!book)
		return NULL;
	book->items = book->stacks = BUFFER_INIT(ITEMS_BYTES_MAX);
	book->frames = INTERNED_INIT(struct named_frame, sizeof(struct frame_key), ITEMS_BYTES_MAX);
	return book;
}

void runtime_book_free(struct runtime_book *book)
{
	if (!book)
		return;
	buffer_done(&book->items);
	buffer_done(&book->stacks);
	u64_map_done(&book->stack_by_hash);
	interned_done(&book->frames);
	free(book);
}

static uint32_t frame_kind_of(uint8_t runtime)
{
	static const uint8_t kinds[SONDE_RUNTIME_COUNT] = {
		[SONDE_RUNTIME_PYTHON] = FRAME_PYTHON,
		[SONDE_RUNTIME_PHP] = FRAME_PHP,
		[SONDE_RUNTIME_PERL] = FRAME_PERL,
	};

	return runtime < SONDE_RUNTIME_COUNT ? kinds[runtime] : FRAME_NATIVE;
}

static uint32_t add_location(struct profile *profile, const struct runtime_function *named, uint32_t kind)
{
	struct profile_function function = {
		.name = profile_string(profile, named->name),
		.system_name = PROFILE_EMPTY_STRING,
		.file = profile_string(profile, named->file),
		.line = named->start_line,
	};
	struct profile_location location = { .mapping = PROFILE_NONE, .kind = kind, .line = named->line };

	if (function.name == PROFILE_NONE || function.file == PROFILE_NONE)
		return PROFILE_NONE;
	location.function = profile_function(profile, &function);
	return location.function == PROFILE_NONE ? PROFILE_NONE : profile_location(profile, &location);
}

/* The location of a frame; PROFILE_NONE: no memory. */
static uint32_t name_frame(struct runtime_book *book, const struct sonde_runtime_record *record, const struct sonde_runtime_frame *frame, const struct stack_walker *walker,
			   struct profile *profile)
{
	struct named_frame fresh = { .key = { .code = frame->code, .where = frame->where, .cookie = frame->cookie, .tgid = record->tgid,
					      .runtime = frame->runtime, .generation = record->generation } };
	uint32_t known = interned_find(&book->frames, &fresh.key);
	struct runtime_function function;
	bool is_mark;

	if (known != INTERNED_NONE)
		return ((const struct named_frame *)interned_at(&book->frames, known))->location;
	is_mark = walker->describe(walker->arg, record->tgid, frame, &function);
	fresh.location = add_location(profile, &function, is_mark ? FRAME_MARK : frame_kind_of(frame->runtime));
	return fresh.location == PROFILE_NONE || interned_add(&book->frames, &fresh) == INTERNED_NONE ? PROFILE_NONE : fresh.location;
}

static uint32_t native_of(uint64_t where)
{
	if (where == SONDE_RUNTIME_AT_LEAF)
		return RUNTIME_ITEM_AT_LEAF;
	return where < RUNTIME_ITEM_AT_LEAF ? (uint32_t)where : RUNTIME_ITEM_UNPLACED;
}

static void append_item(struct runtime_book *book, uint32_t location, uint32_t native)
{
	const struct runtime_item item = { .location = location, .native = native };

	buffer_append(&book->items, &item, sizeof(item));
}

/* The mark that stands for the frames that are not there. */
static int append_stop(struct runtime_book *book, const struct sonde_runtime_record *record, struct profile *profile)
{
	const struct runtime *runtime = runtime_of(record->stopped_runtime);
	const char *mark = runtime_stop_mark(record->stop), *hole = strstr(mark, "%s");
	struct runtime_function named = { .name = "" };
	uint32_t location;

	snprintf(named.name, sizeof(named.name), "%.*s%s%s", hole ? (int)(hole - mark) : (int)strlen(mark), mark, hole && runtime ? runtime->name : "", hole ? hole + 2 : "");
	location = add_location(profile, &named, FRAME_MARK);
	append_item(book, location, 0);
	return location == PROFILE_NONE ? -ENOMEM : 0;
}

int runtime_book_record(struct runtime_book *book, const struct sonde_runtime_record *record, const struct stack_walker *walker, struct profile *profile)
{
	const struct sonde_runtime_frame *frames = (const struct sonde_runtime_frame *)(record + 1);
	uint32_t number = (uint32_t)(book->stacks.size / sizeof(struct kept_stack));
	struct kept_stack stack = { .first = (uint32_t)(book->items.size / sizeof(struct runtime_item)), .stop = record->stop };
	int err = 0;

	if (record->fault)
		walker->touch(walker->arg, record->tgid, record->fault);
	if (u64_map_find(&book->stack_by_hash, record->hash)) /* sent again: the same */
		return 0;
	for (uint32_t i = 0; i < record->nr_frames; i++) {
		bool is_entry = frames[i].flags & SONDE_RUNTIME_ENTRY;
		uint32_t location = is_entry ? PROFILE_NONE : name_frame(book, record, &frames[i], walker, profile);

		if (location == PROFILE_NONE && !is_entry)
			return -ENOMEM;
		append_item(book, location, is_entry ? native_of(frames[i].where) : 0);
	}
	if (record->stop != SONDE_RUNTIME_STOP_COMPLETE && record->stop < SONDE_RUNTIME_STOP_COUNT)
		err = append_stop(book, record, profile);
	stack.nr = (uint32_t)(book->items.size / sizeof(struct runtime_item)) - stack.first;
	buffer_append(&book->stacks, &stack, sizeof(stack));
	if (err || book->items.err || book->stacks.err)
		return -ENOMEM;
	return u64_map_add(&book->stack_by_hash, record->hash, number);
}

size_t runtime_book_bytes(const struct runtime_book *book)
{
	return book->items.size + book->stacks.size + interned_bytes(&book->frames);
}

bool runtime_book_find(const struct runtime_book *book, uint64_t hash, struct runtime_stack *ret_stack)
{
	const uint32_t *number = u64_map_find(&book->stack_by_hash, hash);
	const struct kept_stack *stack = number ? (const struct kept_stack *)book->stacks.data + *number : NULL;

	if (!stack)
		return false;
	*ret_stack = (struct runtime_stack){ .items = (const struct runtime_item *)book->items.data + stack->first, .nr = stack->nr, .stop = stack->stop };
	return true;
}
