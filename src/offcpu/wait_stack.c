// SPDX-License-Identifier: Apache-2.0
#include "offcpu/wait_stack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "stacks/stack_ids.h"

#define STACK_BYTES_MAX (16u << 20)

/* A stack under construction, leaf first. */
struct joining {
	struct profile *profile;
	struct buffer locations; /* uint32_t each */
};

static void append(struct joining *joining, uint32_t location)
{
	buffer_append(&joining->locations, &location, sizeof(location));
	if (location == PROFILE_NONE)
		joining->locations.err = -ENOMEM;
}

static void append_mark(struct joining *joining, const char *text)
{
	struct profile_function function = { .name = profile_string(joining->profile, text) };
	struct profile_location location = { .mapping = PROFILE_NONE, .kind = FRAME_MARK };

	function.system_name = function.name;
	location.function = function.name == PROFILE_NONE ? PROFILE_NONE : profile_function(joining->profile, &function);
	append(joining, location.function == PROFILE_NONE ? PROFILE_NONE : profile_location(joining->profile, &location));
}

/* The frame of a missed side is the only one of its stack; among other frames it becomes a mark. */
static void append_frame(struct joining *joining, uint32_t location)
{
	const struct profile_location *at = profile_location_at(joining->profile, location);

	if (at->kind == FRAME_MISSED)
		append_mark(joining, profile_string_text(joining->profile, profile_function_at(joining->profile, at->function)->name));
	else
		append(joining, location);
}

/* from_root: the root's frame first. PROFILE_NONE is an empty stack. */
static void append_stack(struct joining *joining, uint32_t stack, bool from_root)
{
	uint32_t nr = 0;

	if (stack != PROFILE_NONE)
		profile_stack_at(joining->profile, stack, &nr);
	for (uint32_t i = 0; i < nr && !joining->locations.err; i++) /* fetched each time: adding a mark may move it */
		append_frame(joining, profile_stack_at(joining->profile, stack, &nr)[from_root ? nr - 1 - i : i]);
}

static int finish(struct joining *joining, uint32_t *ret_stack)
{
	int err = joining->locations.err;
	uint32_t stack = PROFILE_NONE;

	if (!err)
		stack = profile_stack(joining->profile, (const uint32_t *)joining->locations.data,
				      (uint32_t)(joining->locations.size / sizeof(stack)));
	buffer_done(&joining->locations);
	if (stack != PROFILE_NONE)
		*ret_stack = stack;
	return err ? err : stack == PROFILE_NONE ? -ENOMEM : 0;
}

static bool is_missed(const struct profile *profile, uint32_t stack)
{
	uint32_t nr;
	const uint32_t *locations = profile_stack_at(profile, stack, &nr);

	return nr == 1 && profile_location_at(profile, locations[0])->kind == FRAME_MISSED;
}

/* The stack at the leaf end of the sample: the kernel's, if it is known. */
static uint32_t *leaf_stack(const struct profile *profile, struct profile_sample *sample)
{
	bool has_kernel = sample->kernel_stack != PROFILE_NONE && !is_missed(profile, sample->kernel_stack);

	return has_kernel || sample->user_stack == PROFILE_NONE ? &sample->kernel_stack : &sample->user_stack;
}

struct names {
	const struct profile *profile;
	const uint32_t *locations;
	uint32_t nr;
};

/* The i-th function of the kernel's stack. */
static const char *name_at(const void *arg, uint32_t i)
{
	const struct names *names = arg;

	if (i >= names->nr)
		return NULL;
	return profile_string_text(
	    names->profile, profile_function_at(names->profile, profile_location_at(names->profile, names->locations[i])->function)->name);
}

static enum wait_kind find_kind(const struct profile *profile, const struct sonde_wait_key *key, uint32_t kernel_stack)
{
	struct names names = { .profile = profile };

	if (kernel_stack != PROFILE_NONE)
		names.locations = profile_stack_at(profile, kernel_stack, &names.nr);
	return wait_kind_of(
	    &(struct wait_facts){ .state = key->state, .syscall = key->syscall, .function_at = name_at, .functions = &names });
}

void wait_kinds_done(struct wait_kinds *kinds)
{
	u64_map_done(&kinds->by_facts);
}

static int kind_of(struct wait_kinds *kinds, const struct profile *profile, const struct sonde_wait_key *key, uint32_t kernel_stack,
		   enum wait_kind *ret_kind)
{
	uint64_t facts = (uint64_t)kernel_stack << 32 | (uint64_t)key->syscall << 16 | key->state;
	const uint32_t *known = u64_map_find(&kinds->by_facts, facts);

	*ret_kind = known ? (enum wait_kind)*known : find_kind(profile, key, kernel_stack);
	return known ? 0 : u64_map_add(&kinds->by_facts, facts, *ret_kind);
}

int wait_stack_make(struct wait_kinds *kinds, struct stack_builder *builder, const struct profile *profile,
		    const struct sonde_wait_key *key, uint64_t user_stack, uint64_t nr_waits, struct profile_sample *sample,
		    enum wait_kind *ret_kind)
{
	struct stack_ids ids = wait_ids(key);
	int err;

	ids.user_stack = user_stack;
	err = stack_builder_sample(builder, &ids, nr_waits, sample);
	if (!err)
		err = kind_of(kinds, profile, key, sample->kernel_stack, ret_kind);
	return err ? err : stack_builder_drop_scheduler(builder, &sample->kernel_stack);
}

int wait_stack_root(struct profile *profile, const char *text, struct profile_sample *sample)
{
	struct joining joining = { .profile = profile, .locations = BUFFER_INIT(STACK_BYTES_MAX) };

	append_stack(&joining, sample->user_stack, false);
	append_mark(&joining, text);
	return finish(&joining, &sample->user_stack);
}

int wait_stack_mark(struct profile *profile, enum wait_kind kind, struct profile_sample *sample)
{
	struct joining joining = { .profile = profile, .locations = BUFFER_INIT(STACK_BYTES_MAX) };
	uint32_t *stack = leaf_stack(profile, sample);
	char text[64];

	if (*stack != PROFILE_NONE && is_missed(profile, *stack))
		return 0; /* it says already that nothing is known */
	snprintf(text, sizeof(text), "[%s]", wait_kind_name(kind));
	append_mark(&joining, text);
	append_stack(&joining, *stack, false);
	return finish(&joining, stack);
}

int wait_stack_join(struct profile *profile, const struct profile_sample *waker, struct profile_sample *sample)
{
	struct joining joining = { .profile = profile, .locations = BUFFER_INIT(STACK_BYTES_MAX) };
	uint32_t *stack = leaf_stack(profile, sample);

	append_mark(&joining, !waker			    ? WAIT_STACK_NO_WAKER
			      : !waker->tgid && !waker->tid ? PROFILE_INTERRUPT
							    : profile_string_text(profile, waker->comm));
	if (waker) {
		append_stack(&joining, waker->user_stack, true);
		append_stack(&joining, waker->kernel_stack, true);
	}
	append_mark(&joining, PROFILE_WAKER);
	append_stack(&joining, *stack, false);
	return finish(&joining, stack);
}
