/* SPDX-License-Identifier: Apache-2.0 */
/* stack_owner: whose a body is that the kernel side has sent under a hash. Two bodies with one hash are so unlikely that the hash alone
 * names them; that it is so is looked at whenever a body comes again and whenever a sample names one, so that no stack is ever shown as
 * another's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/u64_map.h"

struct stack_owner {
	uint32_t tgid, generation; /* of the process, as in struct sonde_sample_record; both 0: the kernel's */
	uint64_t check;            /* of what the hash is of, by another function */
	bool is_disputed;          /* two of this process have the hash: nobody knows which of them a sample means */
};

/* A body has come under a hash that is known. That of another process is told apart by the samples; of the same one it has to be the same.
 */
static inline void stack_owner_again(struct stack_owner *known, const struct stack_owner *again)
{
	if (known->tgid == again->tgid && known->generation == again->generation && known->check != again->check)
		known->is_disputed = true;
}

static inline bool stack_owner_is(const struct stack_owner *owner, uint32_t tgid, uint32_t generation)
{
	return owner->tgid == tgid && owner->generation == generation && !owner->is_disputed;
}
