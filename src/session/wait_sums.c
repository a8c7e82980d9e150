// SPDX-License-Identifier: Apache-2.0
#include "session/wait_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/u64_map.h"

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
	struct buffer sums, slots;              /* struct kept_sum and kept_slot each */
	struct u64_map sum_by_key, slot_by_key; /* by the hash of the key */
};

struct wait_sums *wait_sums_new(void)
{
	struct wait_sums *sums = calloc(1, sizeof(*sums));

	if (sums)
		sums->sums = sums->slots = BUFFER_INIT(MAX_BYTES * 2); /* what is taken at once comes on top */
	return sums;
}

void wait_sums_free(struct wait_sums *sums)
{
	if (!sums)
		return;
	buffer_done(&sums->sums);
	buffer_done(&sums->slots);
	u64_map_done(&sums->sum_by_key);
	u64_map_done(&sums->slot_by_key);
	free(sums);
}

bool wait_sums_have_room(const struct wait_sums *sums)
{
	return sums->sums.size < MAX_BYTES && sums->slots.size < MAX_BYTES;
}

/* The kept element that begins with this key; a new one, all else zero, when there is none. NULL: no memory. */
static void *keep(struct buffer *kept, struct u64_map *by_key, const void *key, size_t key_bytes, size_t element_bytes)
{
	uint64_t hash = hash_bytes(key, key_bytes, 0);
	uint32_t cursor = 0, *known;
	char *fresh;

	while ((known = u64_map_each(by_key, hash, &cursor))) {
		if (!memcmp(kept->data + *known * element_bytes, key, key_bytes))
			return kept->data + *known * element_bytes;
	}
	fresh = buffer_reserve(kept, element_bytes);
	if (!fresh || u64_map_add(by_key, hash, (uint32_t)(kept->size / element_bytes - 1)))
		return NULL;
	memset(fresh, 0, element_bytes);
	memcpy(fresh, key, key_bytes);
	return fresh;
}

static int take_sum(void *arg, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum)
{
	struct wait_sums *sums = arg;
	struct kept_sum *kept = keep(&sums->sums, &sums->sum_by_key, key, sizeof(*key), sizeof(*kept));

	if (!kept)
		return -ENOMEM;
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
	struct kept_slot *kept = keep(&sums->slots, &sums->slot_by_key, slot, sizeof(*slot), sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	kept->nr_waits += nr_waits;
	return 0;
}

int wait_sums_take(struct wait_sums *sums, struct sched_programs *programs)
{
	const struct sched_sink sink = { .sum = take_sum, .slot = take_slot, .arg = sums };

	return sched_programs_take(programs, &sink);
}

int wait_sums_give(const struct wait_sums *sums, const struct sched_sink *sink)
{
	const struct kept_sum *sum = (const void *)sums->sums.data;
	const struct kept_slot *slot = (const void *)sums->slots.data;
	int err = 0;

	for (size_t i = 0; err >= 0 && i < sums->sums.size / sizeof(*sum); i++)
		err = sink->sum(sink->arg, &sum[i].key, &sum[i].sum);
	for (size_t i = 0; err >= 0 && i < sums->slots.size / sizeof(*slot); i++)
		err = sink->slot(sink->arg, &slot[i].slot, slot[i].nr_waits);
	return err;
}
