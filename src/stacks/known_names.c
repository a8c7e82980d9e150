// SPDX-License-Identifier: Apache-2.0
#include "stacks/known_names.h"

#include <stdlib.h>

#define TABLE_BYTES ((size_t)1 << 20) /* of each of the two */
#define FRAME_BYTES ((size_t)1 << 20) /* room for one frame more, with all that are inlined into each other */
#define EMPTY_TABLE FRAME_TABLE_INIT(TABLE_BYTES + FRAME_BYTES)

struct known_names {
	struct frame_table young, old; /* frames are added to the one, until it is full or KNOWN_NAMES_NS old: then it is the other */
	uint64_t since_ns;             /* the young one is used; 0: it is empty */
	const struct frame_table *before; /* of the last window; NULL: there was none */
};

struct known_names *known_names_new(void)
{
	struct known_names *names = calloc(1, sizeof(*names));

	if (names)
		names->young = names->old = EMPTY_TABLE;
	return names;
}

void known_names_free(struct known_names *names)
{
	if (!names)
		return;
	frame_table_done(&names->young);
	frame_table_done(&names->old);
	free(names);
}

static void grow_old(struct known_names *names, uint64_t now_ns)
{
	frame_table_done(&names->old);
	names->old = names->young;
	names->young = EMPTY_TABLE;
	names->since_ns = now_ns;
}

static const struct named_frame *find_lasting(const struct known_names *names, const struct frame_key *key,
					      const struct frame_table **ret_table)
{
	const struct named_frame *frame = frame_table_find(&names->young, key);

	*ret_table = frame ? &names->young : &names->old;
	return frame ? frame : frame_table_find(&names->old, key);
}

const struct named_frame *known_names_find(const struct known_names *names, const struct frame_key *key,
					   const struct frame_table **ret_table)
{
	const struct named_frame *frame = find_lasting(names, key, ret_table);

	if (frame || !names->before)
		return frame;
	*ret_table = names->before;
	frame = frame_table_find(names->before, key);
	return frame && frame->is_named ? frame : NULL;
}

/* False: no memory; the table may have a part of the frame. */
static bool learn(struct known_names *names, const struct frame_table *window, const struct named_frame *frame)
{
	const struct frame_table *table;

	return !frame->is_lasting || find_lasting(names, &frame->key, &table) || /* which keeps its age */
	       frame_table_copy(&names->young, window, frame) != INTERNED_NONE;
}

void known_names_learn(struct known_names *names, const struct frame_table *window, uint64_t now_ns)
{
	bool is_full = false;

	names->before = window;
	for (uint32_t i = 0; !is_full && i < window->frames.nr; i++) {
		if (!learn(names, window, interned_at(&window->frames, i))) {
			frame_table_done(&names->young);
			names->young = EMPTY_TABLE;
			is_full = true;
		}
		is_full |= frame_table_bytes(&names->young) > TABLE_BYTES;
	}
	if (is_full || !names->since_ns || now_ns - names->since_ns > KNOWN_NAMES_NS)
		grow_old(names, now_ns);
}
