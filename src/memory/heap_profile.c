// SPDX-License-Identifier: Apache-2.0
#include "memory/heap_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int heap_renew(struct heap **heap, bool keeps_each)
{
	if (!*heap)
		*heap = calloc(1, sizeof(**heap));
	if (!*heap)
		return -ENOMEM;
	outstanding_free((*heap)->outstanding);
	(*heap)->outstanding = outstanding_new(keeps_each);
	if (!(*heap)->allocated)
		(*heap)->allocated = allocated_new();
	return (*heap)->outstanding && (*heap)->allocated ? 0 : -ENOMEM;
}

void heap_free(struct heap *heap)
{
	if (!heap)
		return;
	outstanding_free(heap->outstanding);
	allocated_free(heap->allocated);
	free(heap);
}

static void free_own(void *own)
{
	heap_free(own);
}

int heap_close(struct heap **heap, struct stack_recorder *recorder, const struct process_table *processes, struct window *window)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < outstanding_nr((*heap)->outstanding); i++)
		err = stack_recorder_keep(recorder, &outstanding_at((*heap)->outstanding, i)->key.ids, 0, processes);
	for (uint32_t i = 0; !err && i < allocated_nr((*heap)->allocated); i++)
		err = stack_recorder_keep(recorder, &allocated_at((*heap)->allocated, i)->ids, 0, processes);
	window->own = MOVE(*heap);
	window->free_own = free_own;
	return err;
}

/* --- values: as pprof names them in profiles of a heap -------------------------------------------------------------------------------- */

enum leak_value { LEAK_OBJECTS, LEAK_BYTES, LEAK_GROWTH, LEAK_VALUES };
enum alloc_value { ALLOC_OBJECTS, ALLOC_BYTES, ALLOC_INUSE_OBJECTS, ALLOC_INUSE_BYTES, ALLOC_VALUES };

struct value_name {
	const char *type, *unit;
};

static const struct value_name leak_values[LEAK_VALUES] = {
	[LEAK_OBJECTS] = { "inuse_objects", "count" },
	[LEAK_BYTES] = { "inuse_space", "bytes" },
	[LEAK_GROWTH] = { "growth_per_hour", "bytes" }, /* of stacks that grow steadily */
};

static const struct value_name alloc_values[ALLOC_VALUES] = {
	[ALLOC_OBJECTS] = { "alloc_objects", "count" },
	[ALLOC_BYTES] = { "alloc_space", "bytes" },
	[ALLOC_INUSE_OBJECTS] = { "inuse_objects", "count" },
	[ALLOC_INUSE_BYTES] = { "inuse_space", "bytes" },
};

static int set_types(struct profile *profile, const struct value_name *names, uint32_t nr, uint32_t shown)
{
	struct profile_value_type types[PROFILE_MAX_VALUES];

	for (uint32_t i = 0; i < nr; i++) {
		types[i] = (struct profile_value_type){ profile_string(profile, names[i].type), profile_string(profile, names[i].unit),
							VALUE_SUM };
		if (types[i].type == PROFILE_NONE || types[i].unit == PROFILE_NONE)
			return -ENOMEM;
	}
	profile_set_value_types(profile, types, nr, shown);
	return 0;
}

static int64_t value_of(uint64_t count)
{
	return (int64_t)count < 0 ? 0 : (int64_t)count; /* below zero: a block of another window turned out to be another one's */
}

/* --- samples -------------------------------------------------------------------------------------------------------------------------- */

/* The stack begins in the allocator's function, at its probe. What asked for the block is its caller. */
static int drop_allocator(struct profile *profile, uint32_t *stack)
{
	uint32_t nr, first = 0, shorter;
	const uint32_t *locations = profile_stack_at(profile, *stack, &nr);
	uint64_t pc = profile_location_at(profile, locations[0])->pc;

	while (pc && first < nr && profile_location_at(profile, locations[first])->pc == pc) /* with what is inlined there */
		first++;
	if (!first || first == nr)
		return 0;
	shorter = profile_stack(profile, locations + first, nr - first);
	if (shorter == PROFILE_NONE)
		return -ENOMEM;
	*stack = shorter;
	return 0;
}

static int add_address(struct profile *profile, uint64_t addr, struct profile_sample *sample)
{
	struct profile_label label = { .key = profile_string(profile, "address"),
				       .text = PROFILE_EMPTY_STRING,
				       .number = (int64_t)addr,
				       .unit = PROFILE_EMPTY_STRING,
				       .is_number = 1 };

	if (!addr)
		return 0;
	sample->labels = label.key == PROFILE_NONE ? PROFILE_NONE : profile_labels(profile, &label, 1);
	return sample->labels == PROFILE_NONE ? -ENOMEM : 0;
}

/* Fills in the stack of a sample that has its process and values. */
static int find_stack(const struct stack_ids *ids, uint64_t nr, const char *comm, struct stack_builder *builder, struct profile *profile,
		      struct profile_sample *sample)
{
	int err;

	sample->tgid = ids->tgid;
	sample->cpu = PROFILE_NONE;
	sample->comm = profile_string(profile, comm);
	err = sample->comm == PROFILE_NONE ? -ENOMEM : stack_builder_sample(builder, ids, nr, sample);
	return err || sample->user_stack == PROFILE_NONE ? err : drop_allocator(profile, &sample->user_stack);
}

static int add_outstanding(const struct outstanding_sum *sum, const struct profile_sample *values, struct stack_builder *builder,
			   struct profile *profile)
{
	struct profile_sample sample = *values;
	int err = find_stack(&sum->key.ids, sum->nr, sum->comm, builder, profile, &sample);

	if (!err)
		err = add_address(profile, sum->key.addr, &sample);
	return err ? err : profile_add(profile, &sample);
}

int heap_profile(const struct heap *heap, struct stack_builder *builder, struct profile *profile)
{
	int err = set_types(profile, leak_values, LEAK_VALUES, LEAK_BYTES);

	for (uint32_t i = 0; !err && i < outstanding_nr(heap->outstanding); i++) {
		const struct outstanding_sum *sum = outstanding_at(heap->outstanding, i);
		const struct profile_sample values = { .values = { [LEAK_OBJECTS] = value_of(sum->nr),
								   [LEAK_BYTES] = value_of(sum->bytes),
								   [LEAK_GROWTH] = value_of(sum->growth) } };

		if (sum->nr)
			err = add_outstanding(sum, &values, builder, profile);
	}
	return err;
}

/* --- sums ----------------------------------------------------------------------------------------------------------------------------- */

struct kinds { /* of histograms: empty ones, of no stack */
	struct profile_histogram sizes, lifetimes;
};

static int init_kind(struct profile *profile, const char *name, const char *unit, struct profile_histogram *ret_kind)
{
	*ret_kind = (struct profile_histogram){ .name = profile_string(profile, name),
						.unit = profile_string(profile, unit),
						.user_stack = PROFILE_NONE,
						.kernel_stack = PROFILE_NONE };
	return ret_kind->name == PROFILE_NONE || ret_kind->unit == PROFILE_NONE ? -ENOMEM : 0;
}

/* Adds the counts to the histogram of all and, if `sample` is not NULL, to that of its stack. */
static int add_histogram(struct profile *profile, const struct profile_histogram *kind, const __u64 *slots, uint32_t nr, uint64_t sum,
			 const struct profile_sample *sample)
{
	struct profile_histogram histogram = *kind;

	for (uint32_t i = 0; i < nr; i++)
		histogram.histogram.slots[i] = (uint64_t)value_of(slots[i]);
	histogram.histogram.sum = (uint64_t)value_of(sum);
	if (!histogram_count(&histogram.histogram))
		return 0;
	if (profile_histogram(profile, &histogram) == PROFILE_NONE)
		return -ENOMEM;
	if (!sample || sample->user_stack == PROFILE_NONE)
		return 0;
	histogram.user_stack = sample->user_stack;
	histogram.comm = sample->comm;
	histogram.tgid = sample->tgid;
	return profile_histogram(profile, &histogram) == PROFILE_NONE ? -ENOMEM : 0;
}

static int add_allocated(const struct allocated_sum *allocated, const struct kinds *kinds, bool by_stack, struct stack_builder *builder,
			 struct profile *profile)
{
	const struct sonde_alloc_sum *sum = &allocated->sum;
	struct profile_sample sample = { .values = { [ALLOC_OBJECTS] = value_of(sum->nr), [ALLOC_BYTES] = value_of(sum->bytes) } };
	int err = find_stack(&allocated->ids, sum->nr, allocated->comm, builder, profile, &sample);
	const struct profile_sample *of = by_stack ? &sample : NULL;

	if (!err && (sample.values[ALLOC_OBJECTS] || sample.values[ALLOC_BYTES]))
		err = profile_add(profile, &sample);
	if (!err)
		err = add_histogram(profile, &kinds->sizes, sum->sizes, SONDE_ALLOC_SIZES, sum->bytes, of);
	return err ? err : add_histogram(profile, &kinds->lifetimes, sum->lifetimes, SONDE_ALLOC_LIFETIMES, sum->lifetime_us, of);
}

int heap_profile_of_sums(const struct heap *heap, bool by_stack, struct stack_builder *builder, struct profile *profile)
{
	struct kinds kinds;
	uint32_t nr_values = heap->is_estimate ? ALLOC_INUSE_OBJECTS : ALLOC_VALUES;
	int err = set_types(profile, alloc_values, nr_values, ALLOC_BYTES) ?: init_kind(profile, "size", "bytes", &kinds.sizes)
			      ?: init_kind(profile, "lifetime", "us", &kinds.lifetimes);

	for (uint32_t i = 0; !err && i < allocated_nr(heap->allocated); i++)
		err = add_allocated(allocated_at(heap->allocated, i), &kinds, by_stack, builder, profile);
	for (uint32_t i = 0; !err && i < outstanding_nr(heap->outstanding); i++) {
		const struct outstanding_sum *sum = outstanding_at(heap->outstanding, i);
		const struct profile_sample values = { .values = { [ALLOC_INUSE_OBJECTS] = value_of(sum->nr),
								   [ALLOC_INUSE_BYTES] = value_of(sum->bytes) } };

		if (sum->nr)
			err = add_outstanding(sum, &values, builder, profile);
	}
	return err;
}
