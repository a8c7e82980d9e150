/* SPDX-License-Identifier: Apache-2.0 */
/* frame_table: frames of runtimes with their names, each once. One thread adds; any thread may read once nothing is added any more. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/interned.h"
#include "base/texts.h"

/* Identifies a frame. Has no padding. */
struct frame_key {
	uint64_t code, where;
	uint32_t cookie, tgid;
	uint32_t runtime, generation;
	uint64_t level; /* of the functions of one frame: 0 the innermost */
};

/* A frame or a mark. A mark has no code and belongs to no process. */
struct named_frame {
	struct frame_key key;
	uint32_t name, file; /* of `texts` */
	uint32_t start_line, line, kind;
	uint32_t caller;     /* number of the function that it is inlined into; INTERNED_NONE: none */
	bool is_named;       /* final: do not ask again */
	bool is_lasting;     /* of struct runtime_function: it was read in the process, and is that of no other code with this key */
	bool is_refuted;     /* the walk from here on is not true */
	bool is_unasked;     /* copied without a name from another table; not asked for in this one */
};

struct frame_table {
	struct interned frames; /* of struct named_frame */
	struct texts texts;
};

#define FRAME_TABLE_INIT(max_bytes) \
	((struct frame_table){ INTERNED_INIT(struct named_frame, sizeof(struct frame_key), (max_bytes)), TEXTS_INIT(max_bytes) })
void frame_table_done(struct frame_table *table);
size_t frame_table_bytes(const struct frame_table *table);
/* 0 or -ENOMEM. */
MUST_CHECK int frame_table_set_name(struct frame_table *table, struct named_frame *frame, const char *name, const char *file);
/* Copies a frame with its name from another table, and those that it is inlined into. Its number here; INTERNED_NONE: no memory. */
uint32_t frame_table_copy(struct frame_table *table, const struct frame_table *from, const struct named_frame *frame);
/* NULL: it is not there. Borrowed until the next frame is added. */
const struct named_frame *frame_table_find(const struct frame_table *table, const struct frame_key *key);
