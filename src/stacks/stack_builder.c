// SPDX-License-Identifier: Apache-2.0
#include "stacks/stack_builder.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buffer.h"
#include "base/u64_map.h"
#include "runtime/runtime.h"
#include "stacks/stack_merge.h"

#define STACK_BYTES_MAX (16u << 20) /* of one stack in the profile */

struct stack_builder {
	const struct stack_store *store;
	struct resolver *resolver;
	struct profile *profile;
	uint32_t *made;        /* stack of the store, by number -> stack of the profile; PROFILE_NONE: not yet */
	uint32_t *locations;   /* runtime frame, by number -> location of the profile; PROFILE_NONE: not yet */
	struct u64_map merged; /* hash of a user stack and its runtime stack -> stack of the profile */
	struct u64_map waited; /* kernel stack of the profile -> the same without the scheduler's functions */
};

static uint32_t *nones(uint32_t nr)
{
	uint32_t *numbers = calloc((size_t)nr + 1, sizeof(*numbers));

	if (numbers)
		memset(numbers, 0xff, nr * sizeof(*numbers)); /* PROFILE_NONE each */
	return numbers;
}

struct stack_builder *stack_builder_new(const struct stack_store *store, struct resolver *resolver, struct profile *profile)
{
	struct stack_builder *builder = calloc(1, sizeof(*builder));

	if (!builder)
		return NULL;
	builder->store = store;
	builder->resolver = resolver;
	builder->profile = profile;
	builder->made = nones(stack_table_nr(store->stacks));
	builder->locations = nones(runtime_stacks_nr_frames(store->runtimes));
	if (builder->made && builder->locations)
		return builder;
	stack_builder_free(builder);
	return NULL;
}

void stack_builder_free(struct stack_builder *builder)
{
	if (!builder)
		return;
	free(builder->made);
	free(builder->locations);
	u64_map_done(&builder->merged);
	u64_map_done(&builder->waited);
	free(builder);
}

const struct stack_store *stack_builder_store(const struct stack_builder *builder)
{
	return builder->store;
}

/* A stack under construction. */
struct making {
	const struct stack_builder *builder;
	const struct stack *stack;
	bool has_frames; /* the stack has runtime frames, or the kernel side reported that there are none */
	bool is_refuted; /* the native frames end where a runtime's mark stands */
	bool is_marked;  /* the mark for missing runtime frames is in: once, at the leaf end */
	struct buffer locations;
};

static int append_location(struct making *making, uint32_t location)
{
	if (location == PROFILE_NONE)
		return -ENOMEM;
	buffer_append(&making->locations, &location, sizeof(location));
	return making->locations.err;
}

static const struct profile_function *function_of(const struct stack_builder *builder, uint32_t location)
{
	return profile_function_at(builder->profile, profile_location_at(builder->profile, location)->function);
}

/* Is this native frame the code by which a runtime shows the previous frame to perf? */
static bool is_trampoline(const struct making *making, uint32_t location)
{
	const struct stack_builder *builder = making->builder;
	size_t nr = making->locations.size / sizeof(uint32_t), length;
	uint32_t before = nr ? ((const uint32_t *)making->locations.data)[nr - 1] : PROFILE_NONE;
	const struct runtime *runtime =
	    before == PROFILE_NONE ? NULL : runtime_of_frame(profile_location_at(builder->profile, before)->kind);
	const struct profile_function *shown;
	const char *name, *shown_name;

	if (!runtime || !runtime->trampoline)
		return false;
	name = profile_string_text(builder->profile, function_of(builder, location)->name);
	if (strncmp(name, runtime->trampoline, strlen(runtime->trampoline)) != 0)
		return false;
	name += strlen(runtime->trampoline);
	shown = function_of(builder, before);
	shown_name = profile_string_text(builder->profile, shown->name);
	length = strlen(shown_name);
	return strncmp(name, shown_name, length) == 0 && name[length] == ':' &&
	       strcmp(name + length + 1, profile_string_text(builder->profile, shown->file)) == 0;
}

static int append_native(void *arg, uint32_t number)
{
	struct making *making = arg;
	const uint32_t *frames = stack_table_frames(making->builder->store->stacks, making->stack), *of_frame;
	uint32_t nr, mark, caller = number + 1 < making->stack->nr ? frames[number + 1] : LOCATION_NO_MEMORY;
	int err =
	    making->stack->is_cut && number == SONDE_LEAF_FRAMES ? append_location(making, resolver_cut(making->builder->resolver)) : 0;

	if (!err && !making->is_marked &&
	    resolver_has_runtime_mark(making->builder->resolver, frames[number], caller, making->has_frames, &mark)) {
		making->is_marked = true;
		err = append_location(making, mark);
	}
	if (err)
		return err;
	of_frame = resolver_locations(making->builder->resolver, frames[number], &nr);
	if (!of_frame)
		return -ENOMEM;
	if (nr == 1 && is_trampoline(making, *of_frame))
		return 0;
	buffer_append(&making->locations, of_frame, nr * sizeof(*of_frame));
	return making->locations.err;
}

static bool is_loop(void *arg, uint32_t number)
{
	const struct making *making = arg;

	return resolver_is_loop(making->builder->resolver, stack_table_frames(making->builder->store->stacks, making->stack)[number]);
}

/* Appends a mark when the stack was not walked to the root, or when frames follow whose native frames are unknown. */
static int append_end(void *arg, bool has_more)
{
	struct making *making = arg;
	const struct stack *stack = making->stack;
	const uint32_t *frames = stack_table_frames(making->builder->store->stacks, stack);

	if (making->is_refuted)
		return 0;
	if (stack->stop == SONDE_STOP_COMPLETE || stack->stop == SONDE_STOP_GAP)
		return has_more ? append_location(making, resolver_no_natives(making->builder->resolver)) : 0;
	return append_location(
	    making, resolver_mark(making->builder->resolver, stack->stop, stack->nr ? frames[stack->nr - 1] : LOCATION_NO_MEMORY));
}

/* The location of a frame; PROFILE_NONE: no memory. */
static uint32_t location_of(const struct stack_builder *builder, struct runtime_frame frame)
{
	struct profile_function function = { .name = profile_string(builder->profile, frame.name),
					     .system_name = PROFILE_EMPTY_STRING,
					     .file = profile_string(builder->profile, frame.file),
					     .line = frame.start_line };
	struct profile_location location = { .mapping = PROFILE_NONE, .kind = frame.kind, .line = frame.line };

	if (function.name == PROFILE_NONE || function.file == PROFILE_NONE)
		return PROFILE_NONE;
	location.function = profile_function(builder->profile, &function);
	return location.function == PROFILE_NONE ? PROFILE_NONE : profile_location(builder->profile, &location);
}

/* A frame of a runtime, and those that it is inlined into. */
static int append_item(void *arg, uint32_t number)
{
	struct making *making = arg;
	int err = 0;

	while (!err && number != RUNTIME_NO_CALLER) {
		const struct runtime_frame frame = runtime_stacks_frame(making->builder->store->runtimes, number);
		uint32_t *location = &making->builder->locations[number];

		if (*location == PROFILE_NONE)
			*location = location_of(making->builder, frame);
		err = append_location(making, *location);
		number = frame.caller;
	}
	return err;
}

/* Number of frames at the leaf that belong to a BPF program and to its call from a tracepoint. It varies with the other programs attached
 * there. */
static size_t nr_of_event(const struct making *making)
{
	static const char *const names[] = {
		"bpf_prog_", "bpf_trace_run", "bpf_trampoline_", "__bpf_trace_", "__traceiter_", "__bpf_prog_"
	};
	const struct profile *profile = making->builder->profile;
	const uint32_t *locations = (const uint32_t *)making->locations.data;
	size_t nr = making->locations.size / sizeof(*locations), i = 0;

	while (i < nr) {
		const char *name = profile_string_text(profile, function_of(making->builder, locations[i])->name);
		size_t k = 0;

		while (k < ARRAY_SIZE(names) && strncmp(name, names[k], strlen(names[k])) != 0)
			k++;
		if (k == ARRAY_SIZE(names))
			break;
		i++;
	}
	return i;
}

/* The profile's stack, with runtime frames merged in. runtime NULL: they are not known. */
static int make_stack(const struct stack_builder *builder, const struct stack *stack, const struct runtime_stack *runtime, bool at_event,
		      uint32_t *ret_stack)
{
	struct making making = {
		.builder = builder, .stack = stack, .has_frames = runtime != NULL, .locations = BUFFER_INIT(STACK_BYTES_MAX)
	};
	const struct stack_merge_sink sink = {
		.native = append_native, .is_loop = is_loop, .end = append_end, .item = append_item, .arg = &making
	};
	uint32_t nr_natives = runtime && runtime->nr_natives < stack->nr ? runtime->nr_natives : stack->nr;
	int err;
	size_t first;

	making.is_refuted = nr_natives < stack->nr;
	err = stack_merge(nr_natives, runtime ? runtime : &(struct runtime_stack){ 0 }, &sink);
	first = !err && at_event ? nr_of_event(&making) : 0;

	if (!err)
		*ret_stack = profile_stack(builder->profile, (const uint32_t *)making.locations.data + first,
					   (uint32_t)(making.locations.size / sizeof(uint32_t) - first));
	buffer_done(&making.locations);
	return err ? err : *ret_stack == PROFILE_NONE ? -ENOMEM : 0;
}

static int profile_of_native(const struct stack_builder *builder, const struct stack *stack, bool at_event, uint32_t *ret_stack)
{
	uint32_t *made = &builder->made[stack_table_number(builder->store->stacks, stack)];
	int err = *made == PROFILE_NONE ? make_stack(builder, stack, NULL, at_event, made) : 0;

	*ret_stack = *made;
	return err;
}

/* Does the payload belong to that process? If not, the samples get none, and are counted as collided. */
static bool is_of(const struct stack_builder *builder, const struct stack_owner *owner, uint32_t tgid, uint32_t generation, uint64_t count)
{
	bool is_own = stack_owner_is(owner, tgid, generation);

	if (!is_own)
		profile_account(builder->profile)->missed_collided += count;
	return is_own;
}

/* False: the payload was lost, or belongs to another process. */
static bool find_runtime(const struct stack_builder *builder, const struct stack_ids *ids, uint64_t count,
			 struct runtime_stack *ret_runtime)
{
	if (!runtime_stacks_find(builder->store->runtimes, ids->runtime_stack, ret_runtime))
		return false;
	return is_of(builder, &ret_runtime->owner, ids->tgid, ids->generation, count);
}

/* A user stack merged with its runtime stack; each pair is built once. */
static int profile_of_both(struct stack_builder *builder, const struct stack *stack, const struct stack_ids *ids, uint64_t count,
			   uint32_t *ret_stack)
{
	const uint64_t both[] = { stack->hash, ids->runtime_stack };
	uint64_t key = hash_bytes(both, sizeof(both), 0);
	const uint32_t *known = u64_map_find(&builder->merged, key);
	struct account *account = profile_account(builder->profile);
	struct runtime_stack runtime;
	int err;

	if (!find_runtime(builder, ids, count, &runtime)) {
		account->runtime_missed += count;
		return profile_of_native(builder, stack, false, ret_stack);
	}
	if (runtime.stop < SONDE_RUNTIME_STOP_COUNT)
		account->runtime_stopped[runtime.stop] += count;
	if (runtime.nr_natives < stack->nr && stack->stop < SONDE_STOP_COUNT) { /* the walk went on where it had no proof */
		account->stopped[stack->stop] -= count;
		account->stopped[SONDE_STOP_NO_ROW] += count;
	}
	if (known) {
		*ret_stack = *known;
		return 0;
	}
	err = make_stack(builder, stack, &runtime, false, ret_stack);
	return err ? err : u64_map_add(&builder->merged, key, *ret_stack);
}

/* A placeholder for a stack that is not known. */
static int profile_of_missed(const struct stack_builder *builder, uint8_t state, bool kernel, uint64_t count, uint32_t *ret_stack)
{
	struct account *account = profile_account(builder->profile);
	uint32_t location = resolver_missed(builder->resolver, kernel);

	*(kernel ? &account->missed_kernel : &account->missed_user) += count;
	if (state == SONDE_STACK_FULL)
		account->missed_full += count;
	*ret_stack = location == PROFILE_NONE ? PROFILE_NONE : profile_stack(builder->profile, &location, 1);
	return *ret_stack == PROFILE_NONE ? -ENOMEM : 0;
}

/* The stack if it belongs to that process; NULL: it is not known, or belongs to another one. */
static const struct stack *if_of(const struct stack_builder *builder, const struct stack *stack, uint32_t tgid, uint32_t generation,
				 uint64_t count)
{
	return stack && is_of(builder, &stack->owner, tgid, generation, count) ? stack : NULL;
}

/* A deferred stack is found by its record's id. Its generation was not known when it was taken. */
static const struct stack *find_user(const struct stack_builder *builder, const struct stack_ids *ids, uint64_t count)
{
	const struct stack *stack;

	if (ids->user_state == SONDE_STACK_DEFERRED) {
		stack = stack_table_find_deferred(builder->store->stacks, ids->user_stack);
		return stack ? if_of(builder, stack, ids->tgid, stack->owner.generation, count) : NULL;
	}
	stack = ids->user_state == SONDE_STACK_STORED ? stack_table_find(builder->store->stacks, ids->user_stack) : NULL;
	return if_of(builder, stack, ids->tgid, ids->user_generation, count);
}

static int profile_of_user(struct stack_builder *builder, const struct stack_ids *ids, uint64_t count, uint32_t *ret_stack)
{
	struct account *account = profile_account(builder->profile);
	const struct stack *stack = find_user(builder, ids, count);
	struct stack_ids by_user_space = *ids;

	if (stack && stack->has_runtime) { /* what the kernel side found goes only as far as its walk */
		by_user_space.runtime_stack = stack->hash;
		by_user_space.runtime_state = SONDE_STACK_STORED;
		by_user_space.generation = stack->owner.generation;
		ids = &by_user_space;
	}
	if (ids->runtime_state == SONDE_STACK_FULL || ids->runtime_state == SONDE_STACK_LOST ||
	    (!stack && ids->runtime_state == SONDE_STACK_STORED))
		account->runtime_missed += count;
	if (!stack)
		return profile_of_missed(builder, ids->user_state, false, count, ret_stack);
	if (stack->stop < SONDE_STOP_COUNT)
		account->stopped[stack->stop] += count;
	return ids->runtime_state == SONDE_STACK_STORED ? profile_of_both(builder, stack, ids, count, ret_stack)
							: profile_of_native(builder, stack, false, ret_stack);
}

static int profile_of_kernel(const struct stack_builder *builder, const struct stack_ids *ids, uint64_t count, uint32_t *ret_stack)
{
	const struct stack *stack =
	    ids->kernel_state == SONDE_STACK_STORED ? stack_table_find(builder->store->stacks, ids->kernel_stack) : NULL;

	stack = if_of(builder, stack, 0, 0, count);
	return stack ? profile_of_native(builder, stack, ids->at_event, ret_stack)
		     : profile_of_missed(builder, ids->kernel_state, true, count, ret_stack);
}

/* The number in the profile; PROFILE_NONE: no memory. */
static uint32_t profile_of_labels(const struct stack_builder *builder, const struct stack_ids *ids, uint64_t count)
{
	const struct stack_owner *owner =
	    ids->labels_state == SONDE_STACK_STORED ? label_table_owner(builder->store->labels, ids->labels) : NULL;
	uint32_t labels = PROFILE_NO_LABELS;

	if (owner && is_of(builder, owner, ids->tgid, ids->generation, count))
		labels = label_table_labels(builder->store->labels, ids->labels, builder->profile);
	if (ids->labels_state != SONDE_STACK_NONE && labels == PROFILE_NO_LABELS)
		profile_account(builder->profile)->labels_missed += count;
	return labels;
}

int stack_builder_sample(struct stack_builder *builder, const struct stack_ids *ids, uint64_t count, struct profile_sample *sample)
{
	int err = 0;

	sample->user_stack = sample->kernel_stack = PROFILE_NONE;
	sample->labels = profile_of_labels(builder, ids, count);
	if (sample->labels == PROFILE_NONE)
		return -ENOMEM;
	if (ids->user_state != SONDE_STACK_NONE)
		err = profile_of_user(builder, ids, count, &sample->user_stack);
	if (!err && ids->kernel_state != SONDE_STACK_NONE)
		err = profile_of_kernel(builder, ids, count, &sample->kernel_stack);
	return err;
}

static int drop_scheduler(const struct stack_builder *builder, uint32_t stack, uint32_t *ret_stack)
{
	CLEANUP(buffer_done) struct buffer kept = BUFFER_INIT(STACK_BYTES_MAX);
	uint32_t nr;
	const uint32_t *locations = profile_stack_at(builder->profile, stack, &nr);

	for (uint32_t i = 0; i < nr; i++) {
		if (!resolver_is_scheduler(builder->resolver, locations[i]))
			buffer_append(&kept, &locations[i], sizeof(*locations));
	}
	if (kept.err)
		return kept.err;
	*ret_stack =
	    kept.size ? profile_stack(builder->profile, (const uint32_t *)kept.data, (uint32_t)(kept.size / sizeof(*locations))) : stack;
	return *ret_stack == PROFILE_NONE ? -ENOMEM : 0;
}

int stack_builder_drop_scheduler(struct stack_builder *builder, uint32_t *kernel_stack)
{
	uint32_t stack = *kernel_stack;
	const uint32_t *known = stack == PROFILE_NONE ? &stack : u64_map_find(&builder->waited, stack);
	int err;

	if (known) {
		*kernel_stack = *known;
		return 0;
	}
	err = drop_scheduler(builder, stack, kernel_stack);
	return err ? err : u64_map_add(&builder->waited, stack, *kernel_stack);
}
