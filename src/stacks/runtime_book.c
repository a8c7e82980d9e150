// SPDX-License-Identifier: Apache-2.0
#include "stacks/runtime_book.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/interned.h"
#include "base/texts.h"
#include "runtime/runtime.h"

#define ITEMS_BYTES_MAX ((size_t)1 << 30)
#define COPIES_MAX 64       /* 8 of a stack at most, and other CPUs' between them */
#define UNNAMED_MAX 1024    /* frames whose name is asked for again; then a new one takes the place of the oldest */
#define ASKED_MAX 128       /* times, a reading: about 0.1 ms; one frame all these times, since what is there for a moment in a thousand is more likely to be met so */
#define ASKED_FOR_MAX 16384 /* times for one frame: for 13 s when it is alone */

/* What makes a frame the same as one before. Has no padding. */
struct frame_key {
	uint64_t code, where;
	uint32_t cookie, tgid;
	uint32_t runtime, generation;
};

/* A frame, or a mark: that has no code, and is no process's. */
struct named_frame {
	struct frame_key key;
	uint32_t name, file; /* of `texts` */
	uint32_t start_line, line, kind;
	bool is_named;       /* it will not be asked for again */
	bool is_unasked;     /* nor was it asked for in this book: it is copied from another one, which had no name either */
};

/* A frame that has no name yet. */
struct unnamed_frame {
	struct sonde_runtime_frame frame;
	uint32_t number, tgid, generation;
	uint32_t nr_left; /* how often it is asked for; 0: it has its name, or never will */
};

struct kept_stack {
	uint32_t first, nr; /* of `items` */
	uint8_t stop;
	struct stack_owner owner;
};

struct runtime_book {
	struct buffer items;  /* struct runtime_item each */
	struct buffer stacks; /* struct kept_stack each */
	struct u64_map stack_by_hash;
	struct interned frames; /* of struct named_frame */
	struct texts texts;
	struct unnamed_frame unnamed[UNNAMED_MAX]; /* a ring */
	uint32_t nr_unnamed, next_asked;           /* in it, ever; the next one to ask for */
	struct sonde_code_record copies[COPIES_MAX]; /* a ring */
	uint32_t nr_copies;                          /* in it, ever */
};

struct runtime_book *runtime_book_new(void)
{
	struct runtime_book *book = calloc(1, sizeof(*book));

	if (!book)
		return NULL;
	book->items = book->stacks = BUFFER_INIT(ITEMS_BYTES_MAX);
	book->frames = INTERNED_INIT(struct named_frame, sizeof(struct frame_key), ITEMS_BYTES_MAX);
	book->texts = TEXTS_INIT(ITEMS_BYTES_MAX);
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
	texts_done(&book->texts);
	free(book);
}

static uint32_t frame_kind_of(uint8_t runtime)
{
	static const uint8_t kinds[SONDE_RUNTIME_COUNT] = {
#define X(id, ...) [SONDE_RUNTIME_##id] = FRAME_##id,
		SONDE_RUNTIME_LIST(X, SONDE_NO_RUNTIME)
#undef X
	};

	return runtime < SONDE_RUNTIME_COUNT ? kinds[runtime] : FRAME_NATIVE;
}

/* 0 or -ENOMEM. */
static int set_name(struct runtime_book *book, struct named_frame *frame, const char *name, const char *file)
{
	frame->name = texts_add(&book->texts, name);
	frame->file = texts_add(&book->texts, file);
	return frame->name == TEXTS_NONE || frame->file == TEXTS_NONE ? -ENOMEM : 0;
}

static int set_answer(struct runtime_book *book, struct named_frame *frame, const struct runtime_function *function, enum runtime_answer answer, uint8_t runtime)
{
	frame->start_line = function->start_line;
	frame->line = function->line;
	frame->kind = answer == RUNTIME_MARK ? FRAME_MARK : frame_kind_of(runtime);
	frame->is_named = answer != RUNTIME_NOT_YET;
	return set_name(book, frame, function->name, function->file);
}

void runtime_book_code(struct runtime_book *book, const struct sonde_code_record *record)
{
	book->copies[book->nr_copies++ % COPIES_MAX] = *record;
}

static const struct sonde_code_record *copy_of(const struct runtime_book *book, const struct frame_key *key)
{
	for (uint32_t i = 0; i < COPIES_MAX && i < book->nr_copies; i++) {
		const struct sonde_code_record *copy = &book->copies[i];

		if (copy->code == key->code && copy->cookie == key->cookie && copy->tgid == key->tgid && copy->generation == key->generation)
			return copy;
	}
	return NULL;
}

static void ask_again_later(struct runtime_book *book, const struct frame_key *key, const struct sonde_runtime_frame *frame, uint32_t number)
{
	book->unnamed[book->nr_unnamed++ % UNNAMED_MAX] = (struct unnamed_frame){ .frame = *frame, .number = number, .tgid = key->tgid, .generation = key->generation,
										  .nr_left = ASKED_FOR_MAX };
}

/* Under the name that it has in the other book. Its number; INTERNED_NONE: no memory. */
static uint32_t copy_frame(struct runtime_book *book, const struct runtime_book *from, const struct named_frame *frame)
{
	struct named_frame copy = *frame;

	copy.is_unasked = !frame->is_named;
	if (set_name(book, &copy, texts_at(&from->texts, frame->name), texts_at(&from->texts, frame->file)))
		return INTERNED_NONE;
	return interned_add(&book->frames, &copy);
}

/* NULL: the other book does not know its name. */
static const struct named_frame *named_before(const struct runtime_book *before, const struct frame_key *key)
{
	uint32_t number = before ? interned_find(&before->frames, key) : INTERNED_NONE;
	const struct named_frame *frame = number == INTERNED_NONE ? NULL : interned_at(&before->frames, number);

	return frame && frame->is_named ? frame : NULL;
}

/* INTERNED_NONE: it is to be asked for. */
static uint32_t asked_frame(const struct runtime_book *book, const struct frame_key *key)
{
	uint32_t number = interned_find(&book->frames, key);
	const struct named_frame *frame = number == INTERNED_NONE ? NULL : interned_at(&book->frames, number);

	return frame && !frame->is_unasked ? number : INTERNED_NONE;
}

/* The number of a frame; INTERNED_NONE: no memory. */
static uint32_t name_frame(struct runtime_book *book, const struct sonde_runtime_record *record, const struct sonde_runtime_frame *frame, const struct stack_walker *walker,
			   const struct runtime_book *before)
{
	struct named_frame fresh = { .key = { .code = frame->code, .where = frame->where, .cookie = frame->cookie, .tgid = record->tgid,
					      .runtime = frame->runtime, .generation = record->generation } };
	uint32_t number = asked_frame(book, &fresh.key);
	const struct named_frame *known;
	struct runtime_function function;
	enum runtime_answer answer;

	if (number != INTERNED_NONE)
		return number;
	known = named_before(before, &fresh.key);
	if (known)
		return copy_frame(book, before, known);
	answer = walker->describe(walker->arg, record->tgid, record->generation, frame, copy_of(book, &fresh.key), false, &function);
	if (set_answer(book, &fresh, &function, answer, frame->runtime))
		return INTERNED_NONE;
	number = interned_add(&book->frames, &fresh);
	if (number == INTERNED_NONE)
		return number;
	*(struct named_frame *)interned_at(&book->frames, number) = fresh; /* also of the stacks that were copied */
	if (answer == RUNTIME_NOT_YET)
		ask_again_later(book, &fresh.key, frame, number);
	return number;
}

/* Asks for one name again. */
static int ask_again(struct runtime_book *book, struct unnamed_frame *unnamed, const struct stack_walker *walker)
{
	struct named_frame *named = interned_at(&book->frames, unnamed->number);
	struct runtime_function function;
	enum runtime_answer answer = walker->describe(walker->arg, unnamed->tgid, unnamed->generation, &unnamed->frame, NULL, true, &function);

	unnamed->nr_left = answer == RUNTIME_NOT_YET ? unnamed->nr_left - 1 : 0;
	return answer == RUNTIME_NAMED || answer == RUNTIME_MARK ? set_answer(book, named, &function, answer, unnamed->frame.runtime) : 0;
}

int runtime_book_ask_again(struct runtime_book *book, const struct stack_walker *walker)
{
	uint32_t nr = book->nr_unnamed < UNNAMED_MAX ? book->nr_unnamed : UNNAMED_MAX, nr_skipped = 0, nr_asked = 0;
	int err = 0;

	while (!err && nr_asked < ASKED_MAX && nr_skipped < nr) { /* skipped: since one that was asked for */
		struct unnamed_frame *unnamed = &book->unnamed[book->next_asked++ % nr];

		nr_skipped = unnamed->nr_left ? 0 : nr_skipped + 1;
		if (!unnamed->nr_left)
			continue;
		err = ask_again(book, unnamed, walker);
		nr_asked++;
	}
	return err;
}

static uint32_t native_of(uint64_t where)
{
	if (where == SONDE_RUNTIME_AT_LEAF)
		return RUNTIME_ITEM_AT_LEAF;
	return where < RUNTIME_ITEM_AT_LEAF ? (uint32_t)where : RUNTIME_ITEM_UNPLACED;
}

static void append_item(struct runtime_book *book, uint32_t frame, uint32_t native)
{
	const struct runtime_item item = { .frame = frame, .native = native };

	buffer_append(&book->items, &item, sizeof(item));
}

/* The mark that stands for the frames that are not there. */
static int append_stop(struct runtime_book *book, const struct sonde_runtime_record *record)
{
	const char *mark = runtime_stop_mark(record->stop), *hole = strstr(mark, "%s");
	struct named_frame fresh = { .key = { .where = record->stop, .runtime = record->stopped_runtime }, .kind = FRAME_MARK, .is_named = true };
	char name[RUNTIME_NAME_BYTES];
	uint32_t number;

	snprintf(name, sizeof(name), "%.*s%s%s", hole ? (int)(hole - mark) : (int)strlen(mark), mark, hole ? runtime_name(record->stopped_runtime) : "", hole ? hole + 2 : "");
	number = set_name(book, &fresh, name, "") ? INTERNED_NONE : interned_add(&book->frames, &fresh);
	append_item(book, number, 0);
	return number == INTERNED_NONE ? -ENOMEM : 0;
}

/* Its items stand last. 0 or -ENOMEM. */
static int append_stack(struct runtime_book *book, uint64_t hash, struct kept_stack *stack)
{
	uint32_t number = (uint32_t)(book->stacks.size / sizeof(*stack));

	stack->nr = (uint32_t)(book->items.size / sizeof(struct runtime_item)) - stack->first;
	buffer_append(&book->stacks, stack, sizeof(*stack));
	return book->items.err || book->stacks.err ? -ENOMEM : u64_map_add(&book->stack_by_hash, hash, number);
}

int runtime_book_record(struct runtime_book *book, const struct sonde_runtime_record *record, const struct stack_walker *walker, const struct runtime_book *before)
{
	const struct sonde_runtime_frame *frames = (const struct sonde_runtime_frame *)(record + 1);
	struct kept_stack stack = {
		.first = (uint32_t)(book->items.size / sizeof(struct runtime_item)),
		.stop = record->stop,
		.owner = { .tgid = record->tgid, .generation = record->generation, .check = hash_bytes(frames, record->nr_frames * sizeof(*frames), record->stop) },
	};
	const uint32_t *known = u64_map_find(&book->stack_by_hash, record->hash);

	if (record->fault)
		walker->touch(walker->arg, record->tgid, record->fault);
	if (known) { /* sent again: the same */
		stack_owner_again(&((struct kept_stack *)book->stacks.data + *known)->owner, &stack.owner);
		return 0;
	}
	for (uint32_t i = 0; i < record->nr_frames; i++) {
		bool is_entry = frames[i].flags & SONDE_RUNTIME_ENTRY;
		uint32_t frame = is_entry ? RUNTIME_ITEM_ENTRY : name_frame(book, record, &frames[i], walker, before);

		if (frame == INTERNED_NONE && !is_entry)
			return -ENOMEM;
		append_item(book, frame, is_entry ? native_of(frames[i].where) : 0);
	}
	if (record->stop != SONDE_RUNTIME_STOP_COMPLETE && record->stop < SONDE_RUNTIME_STOP_COUNT && append_stop(book, record))
		return -ENOMEM;
	return append_stack(book, record->hash, &stack);
}

int runtime_book_copy(struct runtime_book *book, const struct runtime_book *from, uint64_t hash)
{
	struct kept_stack stack = *((const struct kept_stack *)from->stacks.data + *u64_map_find(&from->stack_by_hash, hash));
	const struct runtime_item *items = (const struct runtime_item *)from->items.data + stack.first;
	uint32_t nr = stack.nr;

	stack.first = (uint32_t)(book->items.size / sizeof(*items));
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t frame = items[i].frame;

		if (frame != RUNTIME_ITEM_ENTRY) {
			frame = copy_frame(book, from, interned_at(&from->frames, frame));
			if (frame == INTERNED_NONE)
				return -ENOMEM;
		}
		append_item(book, frame, items[i].native);
	}
	return append_stack(book, hash, &stack);
}

size_t runtime_book_bytes(const struct runtime_book *book)
{
	return book->items.size + book->stacks.size + interned_bytes(&book->frames) + book->texts.bytes.size;
}

bool runtime_book_find(const struct runtime_book *book, uint64_t hash, struct runtime_stack *ret_stack)
{
	const uint32_t *number = u64_map_find(&book->stack_by_hash, hash);
	const struct kept_stack *stack = number ? (const struct kept_stack *)book->stacks.data + *number : NULL;

	if (!stack)
		return false;
	*ret_stack = (struct runtime_stack){ .items = (const struct runtime_item *)book->items.data + stack->first, .nr = stack->nr, .stop = stack->stop, .owner = stack->owner };
	return true;
}

uint32_t runtime_book_nr_frames(const struct runtime_book *book)
{
	return book->frames.nr;
}

struct runtime_frame runtime_book_frame(const struct runtime_book *book, uint32_t frame)
{
	const struct named_frame *named = interned_at(&book->frames, frame);

	return (struct runtime_frame){ .name = texts_at(&book->texts, named->name), .file = texts_at(&book->texts, named->file), .start_line = named->start_line, .line = named->line,
				       .kind = named->kind };
}
