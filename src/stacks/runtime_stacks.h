/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_stacks: the runtime stacks that the kernel side sent. Their frames are resolved on arrival, because a process may free its code
 * soon. Some code is not in memory at every moment, such as a closure that is recreated at each call. A frame whose name could not be read
 * is asked for again at each reading; once found, the name appears in all stacks. One thread adds; any thread may read once nothing is
 * added any more. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"
#include "base/cleanup.h"
#include "model/profile.h"
#include "stacks/frame_table.h"
#include "stacks/known_names.h"
#include "stacks/stack_owner.h"
#include "stacks/stack_walker.h"

#define RUNTIME_ITEM_ENTRY UINT32_MAX
#define RUNTIME_ITEM_OTHER (UINT32_MAX - 1)
#define RUNTIME_ITEM_UNPLACED UINT32_MAX
#define RUNTIME_ITEM_AT_LEAF (UINT32_MAX - 1)
#define RUNTIME_NO_CALLER UINT32_MAX

/* A frame or mark, the end of a run, or the border between two runtimes. */
struct runtime_item {
	uint32_t frame;  /* runtime_stacks_frame; RUNTIME_ITEM_ENTRY: the end of a run; RUNTIME_ITEM_OTHER: another runtime's runs follow */
	uint32_t native; /* at the end of a run: the number of its native frame, or one of the above */
};

struct runtime_stack {
	const struct runtime_item *items; /* leaf first; borrowed until the next record */
	uint32_t nr;
	uint8_t stop;                     /* enum sonde_runtime_stop */
	uint32_t nr_natives;              /* native frames from this number on are not true; UINT32_MAX: all are */
	struct stack_owner owner;
};

struct runtime_stacks;
struct runtime_stacks *runtime_stacks_new(void); /* NULL: no memory */
void runtime_stacks_free(struct runtime_stacks *stacks); /* takes NULL */
/* Keeps a copy of the memory that frame names are read from, for the stack that follows. Only the latest few are kept. */
void runtime_stacks_code(struct runtime_stacks *stacks, const struct sonde_code_record *record);
/* Resolves the frames with the names that are known (may be NULL), or by `walker`, and stores the stack. 0 or -ENOMEM. */
MUST_CHECK int runtime_stacks_record(struct runtime_stacks *stacks, const struct sonde_runtime_record *record,
				     const struct stack_walker *walker, const struct known_names *names);
/* Copies the stack with that hash from another table, which must have it. 0 or -ENOMEM. */
MUST_CHECK int runtime_stacks_copy(struct runtime_stacks *stacks, const struct runtime_stacks *from, uint64_t hash);
/* Asks again for names that could not be read, for a bounded number of frames. 0 or -ENOMEM. */
MUST_CHECK int runtime_stacks_ask_again(struct runtime_stacks *stacks, const struct stack_walker *walker);
size_t runtime_stacks_bytes(const struct runtime_stacks *stacks); /* of all stacks */
bool runtime_stacks_find(const struct runtime_stacks *stacks, uint64_t hash, struct runtime_stack *ret_stack);
const struct frame_table *runtime_stacks_table(const struct runtime_stacks *stacks); /* borrowed likewise */
struct runtime_frame { /* borrowed likewise */
	const char *name, *file;
	uint32_t start_line, line;
	uint32_t kind;   /* enum frame_kind */
	uint32_t caller; /* the frame that it is inlined into, which comes next in a stack; RUNTIME_NO_CALLER */
};
uint32_t runtime_stacks_nr_frames(const struct runtime_stacks *stacks);
struct runtime_frame runtime_stacks_frame(const struct runtime_stacks *stacks, uint32_t frame);
