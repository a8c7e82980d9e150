// SPDX-License-Identifier: Apache-2.0
#include "stacks/wait_sums.h"

#include <errno.h>
#include <stdlib.h>

#include "base/interned.h"

#define MAX_BYTES (256u << 20) /* of sums, about two million; and the same of slots */

struct wait_sums {
	struct interned sums, slots; /* of struct wait_entry and wait_slot_entry */
};

struct wait_sums *wait_sums_new(void)
{
	struct wait_sums *sums = calloc(1, sizeof(*sums));

	if (!sums)
		return NULL;
	sums->sums = INTERNED_INIT(struct wait_entry, sizeof(struct sonde_wait_key), MAX_BYTES);
	sums->slots = INTERNED_INIT(struct wait_slot_entry, sizeof(struct sonde_wait_slot), MAX_BYTES);
	return sums;
}

void wait_sums_free(struct wait_sums *sums)
{
	if (!sums)
		return;
	for (uint32_t i = 0; i < wait_sums_nr(sums); i++)
		process_labels_unref(wait_sums_at(sums, i)->labels);
	interned_done(&sums->sums);
	interned_done(&sums->slots);
	free(sums);
}

size_t wait_sums_bytes(const struct wait_sums *sums)
{
	return interned_bytes(&sums->sums) + interned_bytes(&sums->slots);
}

int wait_sums_add(struct wait_sums *sums, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum)
{
	struct wait_entry entry = { .key = *key, .user_stack = key->user_stack }, *known;
	uint32_t number;

	entry.key.window = 0;
	number = interned_add(&sums->sums, &entry);
	if (number == INTERNED_NONE)
		return -ENOMEM;
	known = interned_at(&sums->sums, number);
	if (!known->sum.nr_waits && !known->sum.off_ns)
		known->sum = *sum;
	else
		sonde_wait_sum_add(&known->sum, sum);
	return 0;
}

int wait_sums_add_slot(struct wait_sums *sums, const struct sonde_wait_slot *slot, uint64_t nr_waits)
{
	struct wait_slot_entry entry = { .slot = *slot };
	uint32_t number;

	entry.slot.key.window = 0;
	number = interned_add(&sums->slots, &entry);
	if (number == INTERNED_NONE)
		return -ENOMEM;
	((struct wait_slot_entry *)interned_at(&sums->slots, number))->nr_waits += nr_waits;
	return 0;
}

uint32_t wait_sums_nr(const struct wait_sums *sums)
{
	return sums->sums.nr;
}

struct wait_entry *wait_sums_at(const struct wait_sums *sums, uint32_t i)
{
	return interned_at(&sums->sums, i);
}

uint32_t wait_sums_nr_slots(const struct wait_sums *sums)
{
	return sums->slots.nr;
}

const struct wait_slot_entry *wait_sums_slot_at(const struct wait_sums *sums, uint32_t i)
{
	return interned_at(&sums->slots, i);
}
