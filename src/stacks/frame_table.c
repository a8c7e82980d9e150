// SPDX-License-Identifier: Apache-2.0
#include "stacks/frame_table.h"

#include <errno.h>

void frame_table_done(struct frame_table *table)
{
	interned_done(&table->frames);
	texts_done(&table->texts);
}

size_t frame_table_bytes(const struct frame_table *table)
{
	return interned_bytes(&table->frames) + table->texts.bytes.size;
}

int frame_table_set_name(struct frame_table *table, struct named_frame *frame, const char *name, const char *file)
{
	frame->name = texts_add(&table->texts, name);
	frame->file = texts_add(&table->texts, file);
	return frame->name == TEXTS_NONE || frame->file == TEXTS_NONE ? -ENOMEM : 0;
}

static uint32_t copy_one(struct frame_table *table, const struct frame_table *from, const struct named_frame *frame)
{
	struct named_frame copy = *frame;
	struct named_frame *known;
	uint32_t number;

	copy.is_unasked = !frame->is_named;
	copy.caller = INTERNED_NONE;
	if (frame_table_set_name(table, &copy, texts_at(&from->texts, frame->name), texts_at(&from->texts, frame->file)))
		return INTERNED_NONE;
	number = interned_add(&table->frames, &copy);
	known = number == INTERNED_NONE ? NULL : interned_at(&table->frames, number);
	if (known && known->is_unasked) /* copied before it had a name */
		*known = copy;
	return number;
}

uint32_t frame_table_copy(struct frame_table *table, const struct frame_table *from, const struct named_frame *frame)
{
	uint32_t first = copy_one(table, from, frame), last = first;

	while (last != INTERNED_NONE && frame->caller != INTERNED_NONE) {
		uint32_t caller;

		frame = interned_at(&from->frames, frame->caller);
		caller = copy_one(table, from, frame);
		((struct named_frame *)interned_at(&table->frames, last))->caller = caller;
		last = caller;
	}
	return last == INTERNED_NONE ? last : first;
}

const struct named_frame *frame_table_find(const struct frame_table *table, const struct frame_key *key)
{
	uint32_t number = interned_find(&table->frames, key);

	return number == INTERNED_NONE ? NULL : interned_at(&table->frames, number);
}
