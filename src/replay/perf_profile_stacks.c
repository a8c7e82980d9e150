// SPDX-License-Identifier: Apache-2.0
#include "replay/perf_profile_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "abi/record.h"
#include "base/buffer.h"
#include "base/number.h"
#include "base/u64_map.h"

#define STACKS_BYTES_MAX ((size_t)8 << 30)
#define STACK_BYTES_MAX (1u << 20)

struct stack {
	uint32_t first, nr; /* range in perf_stacks.frames */
	uint32_t left_out;  /* number of frames before the gap, at the leaf end; 0: no gap */
	uint32_t profile_stack;
	uint8_t stop;
	bool is_kernel;
};

struct perf_stacks {
	const struct process_table *processes;
	struct location_table *locations, *kernel_locations; /* separate: the kernel's names may be missing */
	struct buffer frames, stacks, samples; /* uint32_t: locations; struct stack; struct perf_sample */
	struct buffer scratch;                 /* the locations of a stack to be looked up or added */
	struct u64_map by_stack, by_sample;
};

struct perf_stacks *perf_stacks_new(const struct process_table *processes)
{
	struct perf_stacks *stacks = calloc(1, sizeof(*stacks));

	if (!stacks)
		return NULL;
	stacks->processes = processes;
	stacks->locations = location_table_new();
	stacks->kernel_locations = location_table_new();
	stacks->frames = stacks->stacks = stacks->samples = BUFFER_INIT(STACKS_BYTES_MAX);
	stacks->scratch = BUFFER_INIT(STACK_BYTES_MAX);
	if (stacks->locations && stacks->kernel_locations)
		return stacks;
	perf_stacks_free(stacks);
	return NULL;
}

void perf_stacks_free(struct perf_stacks *stacks)
{
	if (!stacks)
		return;
	location_table_free(stacks->locations);
	location_table_free(stacks->kernel_locations);
	buffer_done(&stacks->frames);
	buffer_done(&stacks->stacks);
	buffer_done(&stacks->samples);
	buffer_done(&stacks->scratch);
	u64_map_done(&stacks->by_stack);
	u64_map_done(&stacks->by_sample);
	free(stacks);
}

static struct stack *stack_at(const struct perf_stacks *stacks, uint32_t i)
{
	return (struct stack *)stacks->stacks.data + i;
}

static bool is_same_stack(const struct perf_stacks *stacks, const struct stack *a, const struct stack *b, const void *frames)
{
	return a->nr == b->nr && a->left_out == b->left_out && a->stop == b->stop && a->is_kernel == b->is_kernel &&
	       (!a->nr || !memcmp((const uint32_t *)stacks->frames.data + a->first, frames, a->nr * sizeof(uint32_t)));
}

/* Finds or adds the stack of the locations in stacks->scratch. */
static int enter_stack(struct perf_stacks *stacks, struct stack stack, uint32_t *ret_stack)
{
	uint64_t key =
	    hash_bytes(stacks->scratch.data, stacks->scratch.size, (uint64_t)stack.is_kernel << 32 | stack.left_out << 8 | stack.stop);
	uint32_t cursor = 0, *known, number = (uint32_t)(stacks->stacks.size / sizeof(stack));

	if (stacks->scratch.err)
		return stacks->scratch.err;
	stack.nr = (uint32_t)(stacks->scratch.size / sizeof(uint32_t));
	while ((known = u64_map_each(&stacks->by_stack, key, &cursor))) {
		if (is_same_stack(stacks, stack_at(stacks, *known), &stack, stacks->scratch.data)) {
			*ret_stack = *known;
			return 0;
		}
	}
	stack.first = (uint32_t)(stacks->frames.size / sizeof(uint32_t));
	stack.profile_stack = PROFILE_NONE;
	buffer_append(&stacks->frames, stacks->scratch.data, stacks->scratch.size);
	buffer_append(&stacks->stacks, &stack, sizeof(stack));
	if (stacks->frames.err || stacks->stacks.err || u64_map_add(&stacks->by_stack, key, number))
		return -ENOMEM;
	*ret_stack = number;
	return 0;
}

int perf_stacks_user(struct perf_stacks *stacks, uint32_t tgid, uint64_t time_ns, const uint64_t *frames, uint32_t nr_frames,
		     uint32_t nr_walked, enum sonde_stop stop, uint32_t *ret_stack)
{
	stacks->scratch.size = 0;
	for (uint32_t i = 0; i < nr_frames; i++) {
		uint32_t slot = nr_walked > nr_frames && i >= SONDE_LEAF_FRAMES ? sonde_frame_slot(nr_walked - nr_frames + i) : i;
		uint32_t where = location_user(stacks->locations, stacks->processes, tgid, time_ns, frames[slot]);

		if (where == LOCATION_NO_MEMORY)
			return -ENOMEM;
		buffer_append(&stacks->scratch, &where, sizeof(where));
	}
	return enter_stack(stacks, (struct stack){ .left_out = nr_walked > nr_frames ? SONDE_LEAF_FRAMES : 0, .stop = (uint8_t)stop },
			   ret_stack);
}

int perf_stacks_kernel(struct perf_stacks *stacks, const uint64_t *frames, uint32_t nr_frames, uint32_t *ret_stack)
{
	stacks->scratch.size = 0;
	for (uint32_t i = 0; i < nr_frames; i++) {
		uint32_t where = location_kernel(stacks->kernel_locations, frames[i], i > 0, UINT64_MAX);

		if (where == LOCATION_NO_MEMORY)
			return -ENOMEM;
		buffer_append(&stacks->scratch, &where, sizeof(where));
	}
	return enter_stack(stacks, (struct stack){ .is_kernel = true }, ret_stack);
}

bool perf_stacks_has_kernel(const struct perf_stacks *stacks)
{
	return location_nr(stacks->kernel_locations);
}

static bool is_same_sample(const struct perf_sample *a, const struct perf_sample *b)
{
	return a->user_stack == b->user_stack && a->kernel_stack == b->kernel_stack && a->tgid == b->tgid && a->tid == b->tid &&
	       a->cpu == b->cpu && a->comm == b->comm && a->time_ns == b->time_ns;
}

static void add_values(struct perf_sample *to, const struct perf_sample *from)
{
	for (int i = 0; i < PROFILE_MAX_VALUES; i++)
		to->values[i] = number_sum(to->values[i], from->values[i]);
}

int perf_stacks_add(struct perf_stacks *stacks, const struct perf_sample *sample)
{
	const uint32_t words[] = { sample->user_stack, sample->kernel_stack, sample->tgid, sample->tid, sample->cpu, sample->comm };
	uint64_t key = hash_bytes(words, sizeof(words), 0);
	uint32_t cursor = 0, *known, number = (uint32_t)(stacks->samples.size / sizeof(*sample));

	while (!sample->time_ns && (known = u64_map_each(&stacks->by_sample, key, &cursor))) {
		struct perf_sample *other = (struct perf_sample *)stacks->samples.data + *known;

		if (is_same_sample(other, sample)) {
			add_values(other, sample);
			return 0;
		}
	}
	buffer_append(&stacks->samples, sample, sizeof(*sample));
	if (stacks->samples.err)
		return stacks->samples.err;
	return sample->time_ns ? 0 : u64_map_add(&stacks->by_sample, key, number);
}

/* --- the profile ---------------------------------------------------------------------------------------------------------------------- */

struct builder {
	struct perf_stacks *stacks;
	const struct perf_naming *naming;
	struct resolver *resolver, *kernel_resolver;
	struct profile *profile;
	struct buffer locations; /* of the current stack */
};

static void append(struct builder *builder, uint32_t location)
{
	if (location == PROFILE_NONE)
		builder->locations.err = -ENOMEM;
	buffer_append(&builder->locations, &location, sizeof(location));
}

/* Makes a location in a kernel that does not run here. Its name is the distance from that kernel's start, so that it is the same after
 * another boot. */
static uint32_t unnamed_kernel(const struct builder *builder, const struct location *where)
{
	uint64_t base = where->pc >= builder->naming->kernel_base ? builder->naming->kernel_base : 0;
	struct profile_function function = { .system_name = PROFILE_EMPTY_STRING, .file = PROFILE_EMPTY_STRING };
	struct profile_location location = { .pc = where->pc, .mapping = PROFILE_NONE, .kind = FRAME_KERNEL };
	char name[64];

	snprintf(name, sizeof(name), "[kernel+0x%" PRIx64 "]", where->pc - base);
	function.name = profile_string(builder->profile, name);
	location.function = function.name == PROFILE_NONE ? PROFILE_NONE : profile_function(builder->profile, &function);
	return location.function == PROFILE_NONE ? PROFILE_NONE : profile_location(builder->profile, &location);
}

static int append_location_of(struct builder *builder, bool is_kernel, uint32_t where)
{
	const uint32_t *locations;
	uint32_t nr;

	if (is_kernel && !builder->naming->has_kernel) {
		append(builder, unnamed_kernel(builder, location_at(builder->stacks->kernel_locations, where)));
		return builder->locations.err;
	}
	locations = resolver_locations(is_kernel ? builder->kernel_resolver : builder->resolver, where, &nr);
	if (!locations)
		return -ENOMEM;
	buffer_append(&builder->locations, locations, nr * sizeof(*locations));
	return builder->locations.err;
}

static int add_stack_of(struct builder *builder, uint32_t number, uint32_t *ret_stack)
{
	struct stack *stack = number == PERF_NO_STACK ? NULL : stack_at(builder->stacks, number);
	const uint32_t *frames = stack ? (const uint32_t *)builder->stacks->frames.data + stack->first : NULL;
	int err = 0;

	*ret_stack = stack ? stack->profile_stack : PROFILE_NONE;
	if (!stack || stack->profile_stack != PROFILE_NONE)
		return 0;
	builder->locations.size = 0;
	for (uint32_t i = 0; !err && i < stack->nr; i++) {
		if (stack->left_out && i == stack->left_out)
			append(builder, resolver_cut(builder->resolver));
		err = append_location_of(builder, stack->is_kernel, frames[i]);
	}
	if (!err && stack->stop != SONDE_STOP_COMPLETE)
		append(builder, resolver_mark(builder->resolver, stack->stop, stack->nr ? frames[stack->nr - 1] : LOCATION_NO_MEMORY));
	if (err || builder->locations.err)
		return err ? err : builder->locations.err;
	stack->profile_stack = profile_stack(builder->profile, (const uint32_t *)builder->locations.data,
					     (uint32_t)(builder->locations.size / sizeof(uint32_t)));
	*ret_stack = stack->profile_stack;
	return stack->profile_stack == PROFILE_NONE ? -ENOMEM : 0;
}

static int add_sample_of(struct builder *builder, const struct perf_sample *from)
{
	struct profile_sample sample = {
		.tgid = from->tgid,
		.tid = from->tid,
		.cpu = from->cpu,
		.comm = from->comm,
		.time_ns = from->time_ns ? from->time_ns + builder->naming->unix_offset_ns : 0,
	};
	int err = add_stack_of(builder, from->user_stack, &sample.user_stack);

	memcpy(sample.values, from->values, sizeof(sample.values));
	if (!err)
		err = add_stack_of(builder, from->kernel_stack, &sample.kernel_stack);
	return err ? err : profile_add(builder->profile, &sample);
}

/* Makes one resolver for the user locations and one for the kernel's. */
static int make_resolvers(struct builder *builder, struct location_files **files, struct location_files **kernel_files)
{
	const struct location_files_parts parts = { .processes = builder->stacks->processes, .proxy = builder->naming->naming.proxy };

	*files = location_files_new(&parts, builder->stacks->locations);
	*kernel_files = location_files_new(&parts, builder->stacks->kernel_locations);
	if (!*files || !*kernel_files)
		return -ENOMEM;
	builder->resolver = resolver_new(builder->stacks->locations, *files, &builder->naming->naming, builder->profile);
	builder->kernel_resolver =
	    resolver_new(builder->stacks->kernel_locations, *kernel_files, &builder->naming->naming, builder->profile);
	return builder->resolver && builder->kernel_resolver ? 0 : -ENOMEM;
}

int perf_stacks_profile(struct perf_stacks *stacks, const struct perf_naming *naming, struct profile *profile)
{
	struct location_files *files = NULL, *kernel_files = NULL;
	struct builder builder = { .stacks = stacks, .naming = naming, .profile = profile, .locations = BUFFER_INIT((size_t)256 << 20) };
	const struct perf_sample *samples = (const struct perf_sample *)stacks->samples.data;
	int err = make_resolvers(&builder, &files, &kernel_files);

	if (!err)
		err = resolver_read_files(builder.resolver);
	if (!err && naming->has_kernel)
		err = resolver_read_files(builder.kernel_resolver);
	for (size_t i = 0; !err && i < stacks->samples.size / sizeof(*samples); i++)
		err = add_sample_of(&builder, &samples[i]);
	buffer_done(&builder.locations);
	resolver_free(builder.resolver);
	resolver_free(builder.kernel_resolver);
	location_files_free(files);
	location_files_free(kernel_files);
	return err;
}
