/* SPDX-License-Identifier: Apache-2.0 */
/* stack_table: the stacks that have arrived, by hash, each once, with their frames looked up in the process table. One thread adds; any
 * thread may read once nothing is added any more. */
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
	uint32_t first, nr;     /* in the table's frames */
	uint8_t stop;           /* enum sonde_stop */
	bool has_runtime;       /* user space walked it, and found frames of runtimes: a runtime stack with the same hash */
	bool is_cut;            /* frames behind the first SONDE_LEAF_FRAMES were left out */
};

/* The origin of a stack. */
struct stack_origin {
	uint32_t tgid;       /* 0: a kernel stack */
	uint32_t generation; /* of the process; 0: not known */
	uint64_t time_ns;    /* when the stack was taken */
	uint64_t known_ns;   /* until when the mappings used for the walk were valid; 0: they are those of time_ns */
};

struct stack_table;
struct stack_table *stack_table_new(void); /* NULL: no memory */
void stack_table_free(struct stack_table *table); /* takes NULL */
/* *ret_stack: borrowed until the next one is added; an existing stack if the hash is known, which may belong to another process. 0 or
 * -ENOMEM. */
MUST_CHECK int stack_table_add(struct stack_table *table, const struct stack_origin *origin, const struct deferred_stack *from,
			       const struct process_table *processes, struct stack **ret_stack);
/* For a stack that arrives again by its hash although the process no longer has the mappings of `origin->known_ns`, with which it was
 * walked. *ret_stack: `stack` itself if the mappings on its way are unchanged; otherwise a stack that ends with a mark at the first changed
 * one. Borrowed likewise. 0 or -ENOMEM. */
MUST_CHECK int stack_table_add_later(struct stack_table *table, const struct stack *stack, const struct stack_origin *origin,
				     const struct process_table *processes, const struct stack **ret_stack);
struct stack *stack_table_find(const struct stack_table *table, uint64_t hash); /* borrowed likewise; NULL: it has not arrived */
/* Stacks are numbered from 0 in order of arrival. */
uint32_t stack_table_number(const struct stack_table *table, const struct stack *stack);
uint32_t stack_table_nr(const struct stack_table *table);
/* Copies a stack of another table, with its locations. 0 or -ENOMEM. */
MUST_CHECK int stack_table_copy(struct stack_table *table, const struct stack_table *from, const struct stack *stack,
				const struct process_table *processes, struct stack **ret_stack);
/* Location numbers, leaf first; borrowed likewise. */
const uint32_t *stack_table_frames(const struct stack_table *table, const struct stack *stack);
/* The deferred record of that id was walked; this is its stack. 0 or -ENOMEM. */
MUST_CHECK int stack_table_add_deferred(struct stack_table *table, uint64_t id, const struct stack *stack);
struct stack *stack_table_find_deferred(const struct stack_table *table, uint64_t id); /* NULL: not yet */
void stack_table_forget_deferred(struct stack_table *table, uint64_t id); /* no longer needed */
size_t stack_table_bytes(const struct stack_table *table); /* of all stacks */
const struct location_table *stack_table_locations(const struct stack_table *table); /* borrowed */
