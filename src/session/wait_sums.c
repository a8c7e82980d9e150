// SPDX-License-Identifier: Apache-2.0
#include "session/wait_sums.h"

#include <errno.h>
#include <stdlib.h>

#include "base/interned.h"

#define MAX_BYTES (128u << 20) /* of sums, about a million; and of slots */

struct kept_sum {
	struct sonde_wait_key key;
	struct sonde_wait_sum sum;
};

struct kept_slot {
	struct sonde_wait_slot slot;
	uint64_t nr_waits;
};

struct wait_sums {
	struct interned sums, slots; /* of struct kept_sum and kept_slot */
};

struct wait_sums *wait_sums_new(void)
{
	struct wait_sums *sums = calloc(1, sizeof(*sums));

	if (!sums)
		return NULL;
	sums->sums = INTERNED_INIT(struct kept_sum, sizeof(struct sonde_wait_key), MAX_BYTES * 2); /* what is taken at once comes on top */
	sums->slots = INTERNED_INIT(struct kept_slot, sizeof(struct sonde_wait_slot), MAX_BYTES * 2);
	return sums;
}

void wait_sums_free(struct wait_sums *sums)
{
	if (!sums)
		return;
	interned_done(&sums->sums);
	interned_done(&sums->slots);
	free(sums);
}

bool wait_sums_have_room(const struct wait_sums *sums)
{
	return interned_bytes(&sums->sums) < MAX_BYTES && interned_bytes(&sums->slots) < MAX_BYTES;
}

static int take_sum(void *arg, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum)
{
	struct wait_sums *sums = arg;
	uint32_t number = interned_add(&sums->sums, &(struct kept_sum){ .key = *key });
	struct kept_sum *kept;

	if (number == INTERNED_NONE)
		return -ENOMEM;
	kept = interned_at(&sums->sums, number);
	if (!kept->sum.nr_waits || sum->min_ns < kept->sum.min_ns)
		kept->sum.min_ns = sum->min_ns;
	if (sum->max_ns > kept->sum.max_ns)
		kept->sum.max_ns = sum->max_ns;
	kept->sum.nr_waits += sum->nr_waits;
	kept->sum.off_ns += sum->off_ns;
	kept->sum.queued_ns += sum->queued_ns;
	return 0;
}

static int take_slot(void *arg, const struct sonde_wait_slot *slot, uint64_t nr_waits)
{
	struct wait_sums *sums = arg;
	uint32_t number = interned_add(&sums->slots, &(struct kept_slot){ .slot = *slot });

	if (number == INTERNED_NONE)
		return -ENOMEM;
	((struct kept_slot *)interned_at(&sums->slots, number))->nr_waits += nr_waits;
	return 0;
}

int wait_sums_take(struct wait_sums *sums, struct sched_programs *programs)
{
	const struct sched_sink sink = { .sum = take_sum, .slot = take_slot, .arg = sums };

	return sched_programs_take(programs, &sink);
}

int wait_sums_give(const struct wait_sums *sums, const struct sched_sink *sink)
{
	const struct kept_sum *sum = (const void *)sums->sums.entries;
	const struct kept_slot *slot = (const void *)sums->slots.entries;
	int err = 0;

	for (uint32_t i = 0; err >= 0 && i < sums->sums.nr; i++)
		err = sink->sum(sink->arg, &sum[i].key, &sum[i].sum);
	for (uint32_t i = 0; err >= 0 && i < sums->slots.nr; i++)
		err = sink->slot(sink->arg, &slot[i].slot, slot[i].nr_waits);
	return err;
}
