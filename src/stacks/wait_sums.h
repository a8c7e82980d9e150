/* SPDX-License-Identifier: Apache-2.0 */
/* wait_sums: a window's sums of waits and their histograms. They may be read from the programs any number of times: values under a known
 * key are added up. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"
#include "process/process_labels.h"

struct wait_sums;
struct wait_sums *wait_sums_new(void); /* NULL: no memory */
void wait_sums_free(struct wait_sums *sums); /* takes NULL */
size_t wait_sums_bytes(const struct wait_sums *sums);
/* Both add up; the window in the key is ignored. 0 or -ENOMEM. */
MUST_CHECK int wait_sums_add(struct wait_sums *sums, const struct sonde_wait_key *key, const struct sonde_wait_sum *sum);
MUST_CHECK int wait_sums_add_slot(struct wait_sums *sums, const struct sonde_wait_slot *slot, uint64_t nr_waits);

/* In the order in which their keys arrived. Borrowed until the next one is added; writable except for the key. */
struct wait_entry {
	struct sonde_wait_key key;
	struct sonde_wait_sum sum; /* zeros: the wait continues, and nothing of it counts yet */
	/* the key's, or its replacement: user space walked the stack of a thread that waited already when the recording began */
	uint64_t user_stack;
	struct process_labels *labels; /* of its process, a reference; NULL: not known, or not requested */
};
uint32_t wait_sums_nr(const struct wait_sums *sums);
struct wait_entry *wait_sums_at(const struct wait_sums *sums, uint32_t i);

struct wait_slot_entry {
	struct sonde_wait_slot slot;
	uint64_t nr_waits;
};
uint32_t wait_sums_nr_slots(const struct wait_sums *sums);
const struct wait_slot_entry *wait_sums_slot_at(const struct wait_sums *sums, uint32_t i);
