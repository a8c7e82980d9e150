// SPDX-License-Identifier: Apache-2.0
#include "memory/suspects.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/interned.h"

#define MAX_BYTES ((uint64_t)256 << 20)
#define NS_PER_HOUR (3600 * NS_PER_S)

struct stack_growth {
	struct outstanding_key key;
	uint64_t first_ns, first_bytes, bytes; /* at the first look, and at the last one */
	uint64_t looked_ns;
	uint32_t nr_growths, nr_falls, nr_looks;
};

struct suspects {
	struct interned stacks;
};

struct suspects *suspects_new(void)
{
	struct suspects *suspects = calloc(1, sizeof(*suspects));

	if (suspects)
		suspects->stacks = INTERNED_INIT(struct stack_growth, sizeof(struct outstanding_key), MAX_BYTES);
	return suspects;
}

void suspects_free(struct suspects *suspects)
{
	if (!suspects)
		return;
	interned_done(&suspects->stacks);
	free(suspects);
}

static void take(struct stack_growth *stack, uint64_t bytes, uint64_t now_ns)
{
	if (stack->nr_looks) {
		stack->nr_growths += bytes > stack->bytes;
		stack->nr_falls += bytes < stack->bytes;
	} else {
		stack->first_ns = now_ns;
		stack->first_bytes = bytes;
	}
	stack->nr_looks++;
	stack->bytes = bytes;
	stack->looked_ns = now_ns;
}

/* Bytes per hour; 0: no suspect. */
static uint64_t growth_of(const struct stack_growth *stack)
{
	uint64_t time_ns = stack->looked_ns - stack->first_ns;

	if (stack->nr_growths < SUSPECT_MIN_GROWTHS || stack->nr_growths < stack->nr_falls * SUSPECT_GROWTHS_PER_FALL ||
	    stack->nr_growths * 2 < stack->nr_looks - 1 || stack->bytes <= stack->first_bytes || !time_ns)
		return 0;
	return (uint64_t)((double)(stack->bytes - stack->first_bytes) * (double)NS_PER_HOUR / (double)time_ns);
}

/* A stack without blocks at this look has none in `outstanding`. */
static void take_empty(struct suspects *suspects, uint64_t now_ns)
{
	for (uint32_t i = 0; i < suspects->stacks.nr; i++) {
		struct stack_growth *stack = interned_at(&suspects->stacks, i);

		if (stack->looked_ns != now_ns)
			take(stack, 0, now_ns);
	}
}

int suspects_look(struct suspects *suspects, struct outstanding *outstanding, uint64_t now_ns)
{
	for (uint32_t i = 0; i < outstanding_nr(outstanding); i++) {
		struct outstanding_sum *sum = outstanding_at(outstanding, i);
		struct stack_growth growth = { .key = sum->key };
		uint32_t number = interned_add(&suspects->stacks, &growth);

		if (number == INTERNED_NONE)
			return -ENOMEM;
		take(interned_at(&suspects->stacks, number), sum->bytes + sum->bytes_young, now_ns);
		sum->growth = growth_of(interned_at(&suspects->stacks, number));
	}
	take_empty(suspects, now_ns);
	return 0;
}
