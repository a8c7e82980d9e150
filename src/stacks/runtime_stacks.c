// SPDX-License-Identifier: Apache-2.0
#include "stacks/runtime_stacks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "runtime/runtime.h"
#include "stacks/frame_table.h"
#include "stacks/known_names.h"

#define ITEMS_BYTES_MAX ((size_t)1 << 30)
#define COPIES_MAX 64       /* at most 8 of a stack, mixed with those of other CPUs */
#define UNNAMED_MAX 1024    /* frames to ask for again; a further one replaces the oldest */
/* Attempts per reading: about 0.1 ms. A single frame may take them all: memory that is valid one moment in a thousand is then more likely
 * to be hit. */
#define ASKED_MAX 128
#define ASKED_FOR_MAX 65536 /* attempts for one frame: for 50 s when it is the only one. With a quarter, one test in eight lacked a name */

#define LEVELS_MAX 128      /* functions of one frame that are inlined into each other; HotSpot forces up to 100 (MaxForceInlineLevel) */

/* A frame without a name so far. */
struct unnamed_frame {
	struct sonde_runtime_frame frame;
	uint32_t number, tgid, generation, level;
	uint32_t nr_left; /* attempts left; 0: it has its name, or never will */
};

struct kept_stack {
	uint32_t first, nr; /* of `items` */
	uint8_t stop;
	uint32_t nr_natives; /* as in struct runtime_stack */
	struct stack_owner owner;
};

struct runtime_stacks {
	struct buffer items;  /* struct runtime_item each */
	struct buffer stacks; /* struct kept_stack each */
	struct u64_map stack_by_hash;
	struct frame_table table;
	struct unnamed_frame unnamed[UNNAMED_MAX]; /* a ring */
	uint32_t nr_unnamed, next_asked;           /* nr_unnamed: ever put into the ring; next_asked: the next one to ask for */
	struct sonde_code_record copies[COPIES_MAX]; /* a ring */
	uint32_t nr_copies;                          /* ever put into the ring */
};

struct runtime_stacks *runtime_stacks_new(void)
{
	struct runtime_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return NULL;
	stacks->items = stacks->stacks = BUFFER_INIT(ITEMS_BYTES_MAX);
	stacks->table = FRAME_TABLE_INIT(ITEMS_BYTES_MAX);
	return stacks;
}

void runtime_stacks_free(struct runtime_stacks *stacks)
{
	if (!stacks)
		return;
	buffer_done(&stacks->items);
	buffer_done(&stacks->stacks);
	u64_map_done(&stacks->stack_by_hash);
	frame_table_done(&stacks->table);
	free(stacks);
}

static uint32_t frame_kind_of(uint8_t runtime)
{
	static const uint8_t kinds[SONDE_RUNTIME_COUNT] = {
#define X(id, ...) [SONDE_RUNTIME_##id] = FRAME_##id,
		SONDE_RUNTIME_LIST(X, X, SONDE_NO_RUNTIME)
#undef X
	};

	return runtime < SONDE_RUNTIME_COUNT ? kinds[runtime] : FRAME_NATIVE;
}

static int set_answer(struct runtime_stacks *stacks, struct named_frame *frame, const struct runtime_function *function,
		      enum runtime_answer answer, uint8_t runtime)
{
	frame->start_line = function->start_line;
	frame->line = function->line;
	frame->kind = answer == RUNTIME_MARK ? FRAME_MARK : frame_kind_of(runtime);
	frame->is_named = answer != RUNTIME_NOT_YET;
	frame->is_lasting = answer == RUNTIME_NAMED && function->is_lasting;
	frame->is_refuted |= function->is_refuted;
	frame->caller = INTERNED_NONE;
	return frame_table_set_name(&stacks->table, frame, function->name, function->file);
}

void runtime_stacks_code(struct runtime_stacks *stacks, const struct sonde_code_record *record)
{
	stacks->copies[stacks->nr_copies++ % COPIES_MAX] = *record;
}

static const struct sonde_code_record *copy_of(const struct runtime_stacks *stacks, const struct frame_key *key)
{
	for (uint32_t i = 0; i < COPIES_MAX && i < stacks->nr_copies; i++) {
		const struct sonde_code_record *copy = &stacks->copies[i];

		if (copy->code == key->code && copy->cookie == key->cookie && copy->tgid == key->tgid &&
		    copy->generation == key->generation)
			return copy;
	}
	return NULL;
}

static void ask_again_later(struct runtime_stacks *stacks, const struct frame_key *key, const struct sonde_runtime_frame *frame,
			    uint32_t number)
{
	stacks->unnamed[stacks->nr_unnamed++ % UNNAMED_MAX] = (struct unnamed_frame){
		.frame = *frame, .number = number, .tgid = key->tgid, .generation = key->generation, .level = (uint32_t)key->level,
		.nr_left = ASKED_FOR_MAX
	};
}

/* INTERNED_NONE: the frame must be asked for. */
static uint32_t asked_frame(const struct runtime_stacks *stacks, const struct frame_key *key)
{
	uint32_t number = interned_find(&stacks->table.frames, key);
	const struct named_frame *frame = number == INTERNED_NONE ? NULL : interned_at(&stacks->table.frames, number);

	return frame && !frame->is_unasked ? number : INTERNED_NONE;
}

/* Asks for the name of one function of a frame. Its number, and whether it is inlined; INTERNED_NONE: no memory. */
static uint32_t name_function(struct runtime_stacks *stacks, const struct frame_key *key, const struct sonde_runtime_frame *frame,
			      const struct stack_walker *walker, bool *ret_has_caller)
{
	struct named_frame fresh = { .key = *key };
	struct runtime_function function = { .level = (uint32_t)key->level };
	enum runtime_answer answer =
	    walker->describe(walker->arg, key->tgid, key->generation, frame, copy_of(stacks, key), false, &function);
	uint32_t number;

	if (set_answer(stacks, &fresh, &function, answer, frame->runtime))
		return INTERNED_NONE;
	number = interned_add(&stacks->table.frames, &fresh);
	if (number == INTERNED_NONE)
		return number;
	*(struct named_frame *)interned_at(&stacks->table.frames, number) = fresh; /* also for stacks that were copied */
	if (answer == RUNTIME_NOT_YET)
		ask_again_later(stacks, key, frame, number);
	*ret_has_caller = function.has_caller;
	return number;
}

/* The mark for frames that are missing. Its number; INTERNED_NONE: no memory. */
static uint32_t mark_of(struct runtime_stacks *stacks, uint8_t stop, uint8_t runtime)
{
	const char *mark = runtime_stop_mark(stop), *hole = strstr(mark, "%s");
	struct named_frame fresh = { .key = { .where = stop, .runtime = runtime },
				     .kind = FRAME_MARK,
				     .caller = INTERNED_NONE,
				     .is_named = true };
	char name[RUNTIME_NAME_BYTES];

	snprintf(name, sizeof(name), "%.*s%s%s", hole ? (int)(hole - mark) : (int)strlen(mark), mark, hole ? runtime_name(runtime) : "",
		 hole ? hole + 2 : "");
	return frame_table_set_name(&stacks->table, &fresh, name, "") ? INTERNED_NONE : interned_add(&stacks->table.frames, &fresh);
}

/* Names the functions that the one with this number is inlined into; instead of more than are kept there is a mark. 0 or -ENOMEM. */
static int name_callers(struct runtime_stacks *stacks, uint32_t number, const struct sonde_runtime_frame *frame,
			const struct stack_walker *walker)
{
	struct frame_key key = ((struct named_frame *)interned_at(&stacks->table.frames, number))->key;
	bool has_caller = true;

	while (has_caller) {
		bool is_last = ++key.level == LEVELS_MAX;
		uint32_t caller = is_last ? mark_of(stacks, SONDE_RUNTIME_STOP_DEPTH, frame->runtime)
					  : name_function(stacks, &key, frame, walker, &has_caller);

		has_caller &= !is_last;
		if (caller == INTERNED_NONE)
			return -ENOMEM;
		((struct named_frame *)interned_at(&stacks->table.frames, number))->caller = caller;
		number = caller;
	}
	return 0;
}

/* Returns the number of a frame; asks for its name if needed. INTERNED_NONE: no memory. */
static uint32_t name_frame(struct runtime_stacks *stacks, const struct sonde_runtime_record *record,
			   const struct sonde_runtime_frame *frame, const struct stack_walker *walker, const struct known_names *names)
{
	const struct frame_key key = { .code = frame->code, .where = frame->where, .cookie = frame->cookie, .tgid = record->tgid,
				       .runtime = frame->runtime, .generation = record->generation };
	uint32_t number = asked_frame(stacks, &key);
	const struct frame_table *table;
	const struct named_frame *known;
	bool has_caller = false;

	if (number != INTERNED_NONE)
		return number;
	known = names ? known_names_find(names, &key, &table) : NULL;
	if (known)
		return frame_table_copy(&stacks->table, table, known);
	number = name_function(stacks, &key, frame, walker, &has_caller);
	if (number != INTERNED_NONE && has_caller && name_callers(stacks, number, frame, walker))
		return INTERNED_NONE;
	return number;
}

/* Asks for one name again. */
static int ask_again(struct runtime_stacks *stacks, struct unnamed_frame *unnamed, const struct stack_walker *walker)
{
	struct named_frame *named = interned_at(&stacks->table.frames, unnamed->number);
	struct runtime_function function = { .level = unnamed->level };
	struct sonde_runtime_frame frame = unnamed->frame;
	enum runtime_answer answer = walker->describe(walker->arg, unnamed->tgid, unnamed->generation, &frame, NULL, true, &function);
	int err;

	unnamed->nr_left = answer == RUNTIME_NOT_YET ? unnamed->nr_left - 1 : 0;
	if (answer != RUNTIME_NAMED && answer != RUNTIME_MARK)
		return 0;
	err = set_answer(stacks, named, &function, answer, frame.runtime);
	return err || !function.has_caller ? err : name_callers(stacks, unnamed->number, &frame, walker);
}

int runtime_stacks_ask_again(struct runtime_stacks *stacks, const struct stack_walker *walker)
{
	uint32_t nr = stacks->nr_unnamed < UNNAMED_MAX ? stacks->nr_unnamed : UNNAMED_MAX, nr_skipped = 0, nr_asked = 0;
	int err = 0;

	while (!err && nr_asked < ASKED_MAX && nr_skipped < nr) { /* skipped: since the last frame asked for */
		struct unnamed_frame *unnamed = &stacks->unnamed[stacks->next_asked++ % nr];

		nr_skipped = unnamed->nr_left ? 0 : nr_skipped + 1;
		if (!unnamed->nr_left)
			continue;
		err = ask_again(stacks, unnamed, walker);
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

static void append_item(struct runtime_stacks *stacks, uint32_t frame, uint32_t native)
{
	const struct runtime_item item = { .frame = frame, .native = native };

	buffer_append(&stacks->items, &item, sizeof(item));
}

/* Appends the mark for the missing frames. */
static int append_mark(struct runtime_stacks *stacks, uint8_t stop, uint8_t runtime)
{
	uint32_t number = mark_of(stacks, stop, runtime);

	append_item(stacks, number, 0);
	return number == INTERNED_NONE ? -ENOMEM : 0;
}

static int append_stop(struct runtime_stacks *stacks, const struct sonde_runtime_record *record)
{
	return append_mark(stacks, record->stop, record->stopped_runtime);
}

/* The stack's items are the last ones. 0 or -ENOMEM. */
static int append_stack(struct runtime_stacks *stacks, uint64_t hash, struct kept_stack *stack)
{
	uint32_t number = (uint32_t)(stacks->stacks.size / sizeof(*stack));

	stack->nr = (uint32_t)(stacks->items.size / sizeof(struct runtime_item)) - stack->first;
	buffer_append(&stacks->stacks, stack, sizeof(*stack));
	return stacks->items.err || stacks->stacks.err ? -ENOMEM : u64_map_add(&stacks->stack_by_hash, hash, number);
}

/* Is what was walked from this frame on not true? */
static bool is_refuted(const struct runtime_stacks *stacks, uint32_t frame)
{
	return ((const struct named_frame *)interned_at(&stacks->table.frames, frame))->is_refuted;
}

static bool is_stopped(const struct sonde_runtime_record *record)
{
	return record->stop != SONDE_RUNTIME_STOP_COMPLETE && record->stop < SONDE_RUNTIME_STOP_COUNT;
}

/* Appends the runs of one runtime, which begin at number `from`, and the mark if they were not all found. Returns the number behind them;
 * negative: -ENOMEM. */
static int64_t append_runs(struct runtime_stacks *stacks, const struct sonde_runtime_record *record, uint32_t from,
			   const struct stack_walker *walker, const struct known_names *names, struct kept_stack *stack)
{
	const struct sonde_runtime_frame *frames = (const struct sonde_runtime_frame *)(record + 1);
	uint32_t i = from;

	for (; i < record->nr_frames && frames[i].runtime == frames[from].runtime; i++) {
		bool is_entry = frames[i].flags & SONDE_RUNTIME_ENTRY;
		uint32_t frame = is_entry ? RUNTIME_ITEM_ENTRY : name_frame(stacks, record, &frames[i], walker, names);

		if (frame == INTERNED_NONE && !is_entry)
			return -ENOMEM;
		append_item(stacks, frame, is_entry ? native_of(frames[i].where) : 0);
		if (frames[i].flags & SONDE_RUNTIME_PLACED)
			append_item(stacks, RUNTIME_ITEM_ENTRY, frames[i].native);
		if (!is_entry && is_refuted(stacks, frame)) {
			stack->nr_natives = frames[i].native + 1u;
			stack->stop = SONDE_RUNTIME_STOP_TORN;
			return append_mark(stacks, stack->stop, frames[i].runtime) ?: record->nr_frames;
		}
	}
	if (is_stopped(record) && record->stopped_runtime == frames[from].runtime && append_stop(stacks, record))
		return -ENOMEM;
	return i;
}

/* Appends the runs of all runtimes. 0 or -ENOMEM. */
static int append_runtimes(struct runtime_stacks *stacks, const struct sonde_runtime_record *record, const struct stack_walker *walker,
			   const struct known_names *names, struct kept_stack *stack)
{
	const struct sonde_runtime_frame *frames = (const struct sonde_runtime_frame *)(record + 1);
	bool has_stopped_runs = false;
	int64_t next = 0;

	while (next >= 0 && next < record->nr_frames) {
		if (next)
			append_item(stacks, RUNTIME_ITEM_OTHER, 0);
		has_stopped_runs |= frames[next].runtime == record->stopped_runtime;
		next = append_runs(stacks, record, (uint32_t)next, walker, names, stack);
	}
	if (next < 0 || !is_stopped(record) || has_stopped_runs || stack->nr_natives != UINT32_MAX)
		return next < 0 ? -ENOMEM : 0;
	if (next)
		append_item(stacks, RUNTIME_ITEM_OTHER, 0);
	return append_stop(stacks, record);
}

int runtime_stacks_record(struct runtime_stacks *stacks, const struct sonde_runtime_record *record, const struct stack_walker *walker,
			  const struct known_names *names)
{
	const struct sonde_runtime_frame *frames = (const struct sonde_runtime_frame *)(record + 1);
	struct kept_stack stack = {
		.first = (uint32_t)(stacks->items.size / sizeof(struct runtime_item)),
		.stop = record->stop,
		.nr_natives = UINT32_MAX,
		.owner = { .tgid = record->tgid,
			   .generation = record->generation,
			   .check = hash_bytes(frames, record->nr_frames * sizeof(*frames), record->stop) },
	};
	const uint32_t *known = u64_map_find(&stacks->stack_by_hash, record->hash);

	if (record->fault)
		walker->touch(walker->arg, record->tgid, record->fault);
	if (known) { /* sent again: must be the same */
		stack_owner_again(&((struct kept_stack *)stacks->stacks.data + *known)->owner, &stack.owner);
		return 0;
	}
	if (append_runtimes(stacks, record, walker, names, &stack))
		return -ENOMEM;
	return append_stack(stacks, record->hash, &stack);
}

int runtime_stacks_copy(struct runtime_stacks *stacks, const struct runtime_stacks *from, uint64_t hash)
{
	struct kept_stack stack = *((const struct kept_stack *)from->stacks.data + *u64_map_find(&from->stack_by_hash, hash));
	const struct runtime_item *items = (const struct runtime_item *)from->items.data + stack.first;
	uint32_t nr = stack.nr;

	stack.first = (uint32_t)(stacks->items.size / sizeof(*items));
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t frame = items[i].frame;

		if (frame != RUNTIME_ITEM_ENTRY && frame != RUNTIME_ITEM_OTHER) {
			frame = frame_table_copy(&stacks->table, &from->table, interned_at(&from->table.frames, frame));
			if (frame == INTERNED_NONE)
				return -ENOMEM;
		}
		append_item(stacks, frame, items[i].native);
	}
	return append_stack(stacks, hash, &stack);
}

size_t runtime_stacks_bytes(const struct runtime_stacks *stacks)
{
	return stacks->items.size + stacks->stacks.size + frame_table_bytes(&stacks->table);
}

bool runtime_stacks_find(const struct runtime_stacks *stacks, uint64_t hash, struct runtime_stack *ret_stack)
{
	const uint32_t *number = u64_map_find(&stacks->stack_by_hash, hash);
	const struct kept_stack *stack = number ? (const struct kept_stack *)stacks->stacks.data + *number : NULL;

	if (!stack)
		return false;
	*ret_stack = (struct runtime_stack){ .items = (const struct runtime_item *)stacks->items.data + stack->first,
					     .nr = stack->nr,
					     .stop = stack->stop,
					     .nr_natives = stack->nr_natives,
					     .owner = stack->owner };
	return true;
}

const struct frame_table *runtime_stacks_table(const struct runtime_stacks *stacks)
{
	return &stacks->table;
}

uint32_t runtime_stacks_nr_frames(const struct runtime_stacks *stacks)
{
	return stacks->table.frames.nr;
}

struct runtime_frame runtime_stacks_frame(const struct runtime_stacks *stacks, uint32_t frame)
{
	const struct named_frame *named = interned_at(&stacks->table.frames, frame);

	return (struct runtime_frame){ .name = texts_at(&stacks->table.texts, named->name),
				       .file = texts_at(&stacks->table.texts, named->file),
				       .start_line = named->start_line,
				       .line = named->line,
				       .kind = named->kind,
				       .caller = named->caller == INTERNED_NONE ? RUNTIME_NO_CALLER : named->caller };
}
