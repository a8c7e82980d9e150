/* SPDX-License-Identifier: Apache-2.0 */
/* stack_owner: the process that a payload belongs to. A 64-bit hash identifies a payload. Collisions are unlikely but checked: when a
 * payload arrives again, and when a sample refers to one. So no stack is shown for the wrong process. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/u64_map.h"

struct stack_owner {
	uint32_t tgid, generation; /* of the process, as in struct sonde_sample_record; both 0: the kernel */
	uint64_t check;            /* another hash of the same bytes */
	bool is_disputed;          /* two payloads of this process have the hash: a sample may mean either */
};

/* A payload arrived under a known hash. If it belongs to another process, the samples tell the two apart. If it belongs to the same
 * process, it must be the same payload. */
static inline void stack_owner_again(struct stack_owner *known, const struct stack_owner *again)
{
	if (known->tgid == again->tgid && known->generation == again->generation && known->check != again->check)
		known->is_disputed = true;
}

static inline bool stack_owner_is(const struct stack_owner *owner, uint32_t tgid, uint32_t generation)
{
	return owner->tgid == tgid && owner->generation == generation && !owner->is_disputed;
}
