/* SPDX-License-Identifier: Apache-2.0 */
/* stack_table: the stacks that have come, by their hashes, each once, with their frames looked up in the process table. One thread adds;
 * any may read when nothing is added any more. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"
#include "base/cleanup.h"
#include "naming/location.h"
#include "process/process_table.h"
#include "stacks/stack_owner.h"
#include "unwind/deferred_walk.h"

struct stack {
	uint64_t hash;
	struct stack_owner owner;
	uint32_t first, nr;     /* of the table's frames */
	uint8_t stop;           /* enum sonde_stop */
	bool is_cut;            /* frames were left out behind the first SONDE_LEAF_FRAMES */
};

/* Where a stack comes from. */
struct stack_origin {
	uint32_t tgid;       /* 0: a kernel stack */
	uint32_t generation; /* of the process; 0: not known */
	uint64_t time_ns;    /* when it was so */
	uint64_t known_ns;   /* up to when the mappings that it was walked with were true; 0: they are those of time_ns */
};

struct stack_table;
struct stack_table *stack_table_new(void); /* NULL: no memory */
void stack_table_free(struct stack_table *table); /* takes NULL */
/* *ret_stack: borrowed until the next one is added; an old one when it came before, or another's that has the same hash. 0 or -ENOMEM. */
MUST_CHECK int stack_table_add(struct stack_table *table, const struct stack_origin *origin, const struct deferred_stack *from,
			       const struct process_table *processes, struct stack **ret_stack);
/* The same stack, found again by its hash when the process had other mappings than those of `origin->known_ns`, which it was walked with:
 * `stack` itself where those on its way are the same, else one that ends with a mark at the first that is not. Borrowed likewise. 0 or
 * -ENOMEM. */
MUST_CHECK int stack_table_add_later(struct stack_table *table, const struct stack *stack, const struct stack_origin *origin,
				     const struct process_table *processes, const struct stack **ret_stack);
struct stack *stack_table_find(const struct stack_table *table, uint64_t hash); /* borrowed likewise; NULL: it has not come */
/* Stacks are numbered from 0 in the order in which they came. */
uint32_t stack_table_number(const struct stack_table *table, const struct stack *stack);
uint32_t stack_table_nr(const struct stack_table *table);
/* Adds a stack of another table, with its places. 0 or -ENOMEM. */
MUST_CHECK int stack_table_copy(struct stack_table *table, const struct stack_table *from, const struct stack *stack,
				const struct process_table *processes, struct stack **ret_stack);
const uint32_t *stack_table_frames(const struct stack_table *table,
				   const struct stack *stack); /* numbers of places, leaf first; borrowed likewise */
/* The raw record of that id was walked, and is that stack. 0 or -ENOMEM. */
MUST_CHECK int stack_table_add_deferred(struct stack_table *table, uint64_t id, const struct stack *stack);
struct stack *stack_table_find_deferred(const struct stack_table *table, uint64_t id); /* NULL: not yet */
void stack_table_forget_deferred(struct stack_table *table, uint64_t id); /* nobody asks for it any more */
size_t stack_table_bytes(const struct stack_table *table); /* of all stacks */
const struct location_table *stack_table_locations(const struct stack_table *table); /* borrowed */
