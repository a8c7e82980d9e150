// SPDX-License-Identifier: Apache-2.0
#include "stacks/stack_table.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/u64_map.h"

#define FRAMES_BYTES_MAX ((size_t)4 << 30)

struct stack_table {
	struct buffer frames;     /* uint32_t each: location numbers, leaf first */
	struct buffer stacks;     /* struct stack each */
	struct u64_map by_hash;
	struct u64_map by_frames; /* hash of the frames -> a stack with these frames: processes that run the same program share them */
	struct u64_map deferred;      /* id of a deferred record -> its stack */
	struct location_table *locations;
};

struct stack_table *stack_table_new(void)
{
	struct stack_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->frames = table->stacks = BUFFER_INIT(FRAMES_BYTES_MAX);
	table->locations = location_table_new();
	if (!table->locations) {
		free(table);
		return NULL;
	}
	return table;
}

void stack_table_free(struct stack_table *table)
{
	if (!table)
		return;
	buffer_done(&table->frames);
	buffer_done(&table->stacks);
	u64_map_done(&table->by_hash);
	u64_map_done(&table->by_frames);
	u64_map_done(&table->deferred);
	location_table_free(table->locations);
	free(table);
}

static struct stack *stack_at(const struct stack_table *table, uint32_t i)
{
	return (struct stack *)table->stacks.data + i;
}

struct stack *stack_table_find(const struct stack_table *table, uint64_t hash)
{
	const uint32_t *number = u64_map_find(&table->by_hash, hash);

	return number ? stack_at(table, *number) : NULL;
}

uint32_t stack_table_number(const struct stack_table *table, const struct stack *stack)
{
	return (uint32_t)(stack - stack_at(table, 0));
}

uint32_t stack_table_nr(const struct stack_table *table)
{
	return (uint32_t)(table->stacks.size / sizeof(struct stack));
}

const uint32_t *stack_table_frames(const struct stack_table *table, const struct stack *stack)
{
	return (const uint32_t *)table->frames.data + stack->first;
}

int stack_table_add_deferred(struct stack_table *table, uint64_t id, const struct stack *stack)
{
	return u64_map_add(&table->deferred, id, stack_table_number(table, stack));
}

struct stack *stack_table_find_deferred(const struct stack_table *table, uint64_t id)
{
	const uint32_t *number = u64_map_find(&table->deferred, id);

	return number ? stack_at(table, *number) : NULL;
}

void stack_table_forget_deferred(struct stack_table *table, uint64_t id)
{
	const uint32_t *number = u64_map_find(&table->deferred, id);

	if (number)
		u64_map_remove(&table->deferred, id, *number);
}

size_t stack_table_bytes(const struct stack_table *table)
{
	return table->frames.size + table->stacks.size;
}

const struct location_table *stack_table_locations(const struct stack_table *table)
{
	return table->locations;
}

/* Was another file mapped at the frame when the stack was walked than the walk assumed? The process may have replaced the mapping
 * meanwhile. */
static bool is_stale(const struct process_table *processes, const struct stack_origin *origin, uint64_t frame)
{
	uint64_t pc = (frame & ~SONDE_FRAME_RETURN) - (frame >> 63);
	const struct process_mapping *then, *now;

	if (!origin->known_ns || origin->known_ns >= origin->time_ns)
		return false;
	then = process_table_find(processes, origin->tgid, origin->known_ns, pc);
	now = process_table_find(processes, origin->tgid, origin->time_ns, pc);
	return then && now && (then->object != now->object || then->load_bias != now->load_bias);
}

/* The i-th kept frame; the root end is a ring and is unrolled. */
static uint64_t kept_frame(const struct deferred_stack *from, uint32_t i)
{
	if (from->nr_walked > from->nr_frames && i >= SONDE_LEAF_FRAMES)
		i = sonde_frame_slot(from->nr_walked - from->nr_frames + i);
	return from->frames[i];
}

/* A second hash of the same bytes. */
static uint64_t check_of(const struct stack_origin *origin, const struct deferred_stack *from)
{
	uint64_t check = (uint64_t)from->stop;

	for (uint32_t i = origin->tgid ? 0 : SONDE_TRACEPOINT_FRAMES; i < from->nr_frames; i++) {
		uint64_t frame = kept_frame(from, i);

		check = hash_bytes(&frame, sizeof(frame), check);
	}
	return check;
}

/* Keeps equal frames once. The stack's frames are the last in the table. */
static int share_frames(struct stack_table *table, struct stack *stack, uint32_t number)
{
	const uint32_t *frames = stack_table_frames(table, stack), *same;
	uint64_t hash = hash_bytes(frames, stack->nr * sizeof(*frames), 0);
	uint32_t cursor = 0;

	while ((same = u64_map_each(&table->by_frames, hash, &cursor))) {
		const struct stack *other = stack_at(table, *same);

		if (other->nr == stack->nr && !memcmp(stack_table_frames(table, other), frames, stack->nr * sizeof(*frames))) {
			table->frames.size = stack->first * sizeof(*frames);
			stack->first = other->first;
			return 0;
		}
	}
	return u64_map_add(&table->by_frames, hash, number);
}

/* The stack's frames are the last in the table. */
static int append_stack(struct stack_table *table, struct stack *stack, struct stack **ret_stack)
{
	uint32_t number = stack_table_nr(table);
	int err;

	if (table->frames.err || share_frames(table, stack, number))
		return -ENOMEM;
	buffer_append(&table->stacks, stack, sizeof(*stack));
	err = table->stacks.err ? -ENOMEM : u64_map_add(&table->by_hash, stack->hash, number);
	if (!err)
		*ret_stack = stack_at(table, number);
	return err;
}

int stack_table_add(struct stack_table *table, const struct stack_origin *origin, const struct deferred_stack *from,
		    const struct process_table *processes, struct stack **ret_stack)
{
	struct stack stack = {
		.hash = from->hash,
		.owner = { .tgid = origin->tgid, .generation = origin->generation, .check = check_of(origin, from) },
		.first = (uint32_t)(table->frames.size / sizeof(uint32_t)),
		.is_cut = from->nr_walked > from->nr_frames,
		.has_runtime = from->runtime != NULL,
		.stop = (uint8_t)from->stop,
	};
	struct stack *known = stack_table_find(table, from->hash);

	if (known) { /* sent again: must be the same */
		stack_owner_again(&known->owner, &stack.owner);
		*ret_stack = known;
		return 0;
	}
	while (stack.nr < from->nr_frames) {
		uint64_t frame = kept_frame(from, stack.nr);
		uint32_t location;

		/* Its unwind rows came from another file, so the rest is not reliable. Its names would depend on the time, which the hash
		 * does not cover. */
		if (is_stale(processes, origin, frame)) {
			stack.stop = SONDE_STOP_STALE;
			break;
		}
		location = origin->tgid ? location_user(table->locations, processes, origin->tgid, origin->time_ns, frame) :
				       location_kernel(table->locations, frame, stack.nr > 0, origin->time_ns);
		if (location == LOCATION_NO_MEMORY)
			return -ENOMEM;
		buffer_append(&table->frames, &location, sizeof(location));
		stack.nr++;
	}
	stack.is_cut = stack.is_cut && stack.nr > SONDE_LEAF_FRAMES;
	return append_stack(table, &stack, ret_stack);
}

int stack_table_copy(struct stack_table *table, const struct stack_table *from, const struct stack *stack,
		     const struct process_table *processes, struct stack **ret_stack)
{
	const uint32_t *frames = stack_table_frames(from, stack);
	struct stack copy = *stack;

	copy.first = (uint32_t)(table->frames.size / sizeof(uint32_t));
	for (uint32_t i = 0; i < stack->nr; i++) {
		uint32_t location = location_copy(table->locations, processes, location_at(from->locations, frames[i]));

		if (location == LOCATION_NO_MEMORY)
			return -ENOMEM;
		buffer_append(&table->frames, &location, sizeof(location));
	}
	return append_stack(table, &copy, ret_stack);
}

/* The frames as the kernel side has them: pcs, leaf first. The root end goes where it would be if one frame were left out before it.
 * Returns how many are known: those before the first that was not mapped. */
static uint32_t pcs_of(const struct stack_table *table, const struct stack *stack, const struct process_mapping *mappings,
		       uint32_t nr_mappings, uint64_t *ret_frames)
{
	for (uint32_t i = 0; i < stack->nr; i++) {
		const struct location *location = location_at(table->locations, stack_table_frames(table, stack)[i]);
		uint64_t pc = location_pc(location, mappings, nr_mappings);

		if (!pc)
			return i;
		ret_frames[stack->is_cut && i >= SONDE_LEAF_FRAMES ? sonde_frame_slot(i + 1) : i] =
		    pc | (location->is_return ? SONDE_FRAME_RETURN : 0);
	}
	return stack->nr;
}

int stack_table_add_later(struct stack_table *table, const struct stack *stack, const struct stack_origin *origin,
			  const struct process_table *processes, const struct stack **ret_stack)
{
	CLEANUP(freep) uint64_t *frames = calloc(SONDE_MAX_USER_FRAMES, sizeof(*frames));
	const uint64_t key[] = { stack->hash, origin->time_ns };
	struct deferred_stack later = { .frames = frames, .hash = hash_bytes(key, sizeof(key), 0), .stop = stack->stop };
	struct mappings_at then = { 0 };
	struct stack *made;
	uint32_t i = 0;
	int err = frames ? process_table_at(processes, origin->tgid, origin->known_ns, &then) : -ENOMEM;
	CLEANUP(freep) struct process_mapping *mappings = then.list;

	*ret_stack = stack;
	if (err)
		return err == -ENOMEM ? err : 0;
	later.nr_frames = (uint16_t)pcs_of(table, stack, mappings, then.nr, frames);
	later.nr_walked = later.nr_frames + stack->is_cut;
	if (later.nr_frames < stack->nr)
		later.stop = SONDE_STOP_STALE;
	while (i < later.nr_frames && !is_stale(processes, origin, kept_frame(&later, i)))
		i++;
	if (i == stack->nr)
		return 0;
	err = stack_table_add(table, origin, &later, processes, &made);
	if (!err)
		*ret_stack = made;
	return err;
}
