// SPDX-License-Identifier: Apache-2.0
#include "memory/outstanding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/interned.h"

#define MAX_BYTES ((uint64_t)1 << 30)

struct outstanding {
	struct interned sums;
	bool keeps_each;
};

struct outstanding *outstanding_new(bool keeps_each)
{
	struct outstanding *outstanding = calloc(1, sizeof(*outstanding));

	if (!outstanding)
		return NULL;
	outstanding->sums = INTERNED_INIT(struct outstanding_sum, sizeof(struct outstanding_key), MAX_BYTES);
	outstanding->keeps_each = keeps_each;
	return outstanding;
}

void outstanding_free(struct outstanding *outstanding)
{
	if (!outstanding)
		return;
	interned_done(&outstanding->sums);
	free(outstanding);
}

int outstanding_add(struct outstanding *outstanding, const struct outstanding_block *block)
{
	struct outstanding_sum sum = { .key = { .ids = block->ids, .addr = outstanding->keeps_each ? block->addr : 0 } };
	uint32_t number;
	struct outstanding_sum *at;

	snprintf(sum.comm, sizeof(sum.comm), "%s", block->comm);
	number = interned_add(&outstanding->sums, &sum);
	if (number == INTERNED_NONE)
		return -ENOMEM;
	at = interned_at(&outstanding->sums, number);
	*(block->is_old ? &at->nr : &at->nr_young) += block->weight;
	*(block->is_old ? &at->bytes : &at->bytes_young) += block->bytes * block->weight;
	return 0;
}

uint32_t outstanding_nr(const struct outstanding *outstanding)
{
	return outstanding->sums.nr;
}

struct outstanding_sum *outstanding_at(const struct outstanding *outstanding, uint32_t i)
{
	return interned_at(&outstanding->sums, i);
}
