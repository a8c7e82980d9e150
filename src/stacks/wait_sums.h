/* SPDX-License-Identifier: Apache-2.0 */
/* wait_sums: a window's sums of waits and their histograms, whatever number of times the programs were asked for them: what comes under a
 * key that is known is added to it. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"

struct wait_sums;
struct wait_sums *wait_sums_new(void); /* NULL: no memory */
void wait_sums_free(struct wait_sums *sums); /* takes NULL */
size_t wait_sums_bytes(const struct wait_sums *sums);
/* Both add up; which window the key names does not matter. 0 or -ENOMEM. */
MUST_CHECK int wait_sums_add(struct wait_sums *sums, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum);
MUST_CHECK int wait_sums_add_slot(struct wait_sums *sums, const struct sonde_wait_slot *slot, uint64_t nr_waits);

/* In the order in which their keys came first. Borrowed until the next one is added, and writable but for the key. */
struct wait_entry {
	struct sonde_wait_key key;
	struct sonde_wait_sum sum; /* zeros: the wait goes on, and nothing of it counts yet */
	uint64_t
	    user_stack; /* that of the key, or what stands for it: of a thread that waited when the recording began user space found it */
};
uint32_t wait_sums_nr(const struct wait_sums *sums);
struct wait_entry *wait_sums_at(const struct wait_sums *sums, uint32_t i);

struct wait_slot_entry {
	struct sonde_wait_slot slot;
	uint64_t nr_waits;
};
uint32_t wait_sums_nr_slots(const struct wait_sums *sums);
const struct wait_slot_entry *wait_sums_slot_at(const struct wait_sums *sums, uint32_t i);
