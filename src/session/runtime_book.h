/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_book: the runtime stacks that the kernel side sent, with their frames named as soon as they come: what is run may be freed soon. What is run again and again (a closure that is
 * made anew at each call) is not there at every moment: a frame whose name could not be read is asked for again at each reading, and then has its name in all stacks. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"
#include "base/cleanup.h"
#include "model/profile.h"
#include "session/stack_owner.h"
#include "session/stack_walker.h"

#define RUNTIME_ITEM_ENTRY UINT32_MAX
#define RUNTIME_ITEM_UNPLACED UINT32_MAX
#define RUNTIME_ITEM_AT_LEAF (UINT32_MAX - 1)

/* A frame or mark, or the end of a run. */
struct runtime_item {
	uint32_t frame;  /* runtime_book_location; RUNTIME_ITEM_ENTRY: the end of a run */
	uint32_t native; /* there: the number of its native frame, or one of the above */
};

struct runtime_stack {
	const struct runtime_item *items; /* leaf first; borrowed until the next record */
	uint32_t nr;
	uint8_t stop;                     /* enum sonde_runtime_stop */
	struct stack_owner owner;
};

struct runtime_book;
struct runtime_book *runtime_book_new(void); /* NULL: no memory */
void runtime_book_free(struct runtime_book *book); /* takes NULL */
/* Keeps a copy of what code is named by, for the stack that comes next; of a few at a time. */
void runtime_book_code(struct runtime_book *book, const struct sonde_code_record *record);
/* Names the frames by `walker` and keeps the stack; its locations go into `profile`, which is always the same. 0 or -ENOMEM. */
MUST_CHECK int runtime_book_record(struct runtime_book *book, const struct sonde_runtime_record *record, const struct stack_walker *walker, struct profile *profile);
/* Asks for names that could not be read, of a bounded number of frames. 0 or -ENOMEM. */
MUST_CHECK int runtime_book_ask_again(struct runtime_book *book, const struct stack_walker *walker, struct profile *profile);
size_t runtime_book_bytes(const struct runtime_book *book); /* of all stacks */
bool runtime_book_find(const struct runtime_book *book, uint64_t hash, struct runtime_stack *ret_stack);
uint32_t runtime_book_location(const struct runtime_book *book, uint32_t frame); /* of the profile */
