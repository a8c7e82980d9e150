// SPDX-License-Identifier: Apache-2.0
#include "memory/allocated.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/interned.h"

#define MAX_BYTES ((uint64_t)1 << 30)
#define SUM_WORDS (sizeof(struct sonde_alloc_sum) / sizeof(uint64_t))

struct allocated {
	struct interned sums;
};

struct allocated *allocated_new(void)
{
	struct allocated *allocated = calloc(1, sizeof(*allocated));

	if (allocated)
		allocated->sums = INTERNED_INIT(struct allocated_sum, sizeof(struct stack_ids), MAX_BYTES);
	return allocated;
}

void allocated_free(struct allocated *allocated)
{
	if (!allocated)
		return;
	interned_done(&allocated->sums);
	free(allocated);
}

/* Two of the kernel side's keys may be one of ours (known_ids). */
static struct allocated_sum *entry_of(struct allocated *allocated, const struct allocated_sum *empty)
{
	uint32_t number = interned_add(&allocated->sums, empty);

	return number == INTERNED_NONE ? NULL : interned_at(&allocated->sums, number);
}

int allocated_add(struct allocated *allocated, struct allocated *seen, const struct sonde_alloc_sum_key *key,
		  const struct sonde_alloc_sum *sum, const char *comm)
{
	const struct sonde_stack_ids ids = { .user_stack = key->user_stack,
					     .runtime_stack = key->runtime_stack,
					     .user_state = key->user_state,
					     .runtime_state = key->runtime_state,
					     .generation = key->generation };
	struct allocated_sum empty = { .ids = { .ids = ids, .tgid = key->tgid, .user_generation = key->generation } }, *before, *at;
	const uint64_t *now = (const uint64_t *)sum;
	uint64_t *old, *all;

	snprintf(empty.comm, sizeof(empty.comm), "%s", comm);
	before = entry_of(seen, &empty);
	empty.ids.ids = known_ids(&ids);
	at = entry_of(allocated, &empty);
	if (!before || !at)
		return -ENOMEM;
	old = (uint64_t *)&before->sum;
	all = (uint64_t *)&at->sum;
	for (size_t i = 0; i < SUM_WORDS; i++) {
		all[i] += now[i] - old[i];
		old[i] = now[i];
	}
	return 0;
}

int allocated_put(struct allocated *allocated, const struct stack_ids *ids, const struct sonde_alloc_sum *sum, const char *comm)
{
	struct allocated_sum empty = { .ids = *ids }, *at;
	const uint64_t *more = (const uint64_t *)sum;
	uint64_t *all;

	snprintf(empty.comm, sizeof(empty.comm), "%s", comm);
	at = entry_of(allocated, &empty);
	if (!at)
		return -ENOMEM;
	all = (uint64_t *)&at->sum;
	for (size_t i = 0; i < SUM_WORDS; i++)
		all[i] += more[i];
	return 0;
}

uint32_t allocated_nr(const struct allocated *allocated)
{
	return allocated->sums.nr;
}

const struct allocated_sum *allocated_at(const struct allocated *allocated, uint32_t i)
{
	return interned_at(&allocated->sums, i);
}
