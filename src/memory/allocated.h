/* SPDX-License-Identifier: Apache-2.0 */
/* allocated: what was allocated, by the process and stack that asked for it: the kernel side's sums, which grow until the end, as
 * differences from window to window. One thread. */
#pragma once
#include <stdint.h>

#include "abi/alloc.h"
#include "base/cleanup.h"
#include "stacks/stack_ids.h"

struct allocated_sum {
	struct stack_ids ids;           /* key; has no padding */
	struct sonde_alloc_sum sum;
	char comm[SONDE_COMM_BYTES];    /* of the process */
};

struct allocated;
struct allocated *allocated_new(void); /* NULL: no memory */
void allocated_free(struct allocated *allocated); /* takes NULL */
/* `seen` has the sums as they were last read; adds what has come since, and notes them there. 0 or -ENOMEM. */
MUST_CHECK int allocated_add(struct allocated *allocated, struct allocated *seen, const struct sonde_alloc_sum_key *key,
			     const struct sonde_alloc_sum *sum, const char *comm);
/* Adds to a stack's sum. 0 or -ENOMEM. */
MUST_CHECK int allocated_put(struct allocated *allocated, const struct stack_ids *ids, const struct sonde_alloc_sum *sum, const char *comm);
uint32_t allocated_nr(const struct allocated *allocated);
/* Borrowed until the next is added. */
const struct allocated_sum *allocated_at(const struct allocated *allocated, uint32_t i);
