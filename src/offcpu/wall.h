/* SPDX-License-Identifier: Apache-2.0 */
/* wall: turns all of the threads' time into samples: on a CPU, with the stacks that ticks found there; runnable, and blocked, with the
 * stacks that they left the CPU with. A mark at the root end of each stack says which it is. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"
#include "model/profile.h"
#include "stacks/samples.h"
#include "stacks/stack_builder.h"
#include "stacks/wait_sums.h"

#define WALL_NO_SAMPLE "[not sampled]" /* the stack of a thread that was on a CPU but was not met by a tick there */

struct wall;
/* Sets the value type of the profile, which is borrowed until wall_free. kernel_stacks: the report has them. NULL: no memory. */
struct wall *wall_new(bool kernel_stacks, bool labels, struct profile *profile);
void wall_free(struct wall *wall); /* takes NULL */
static inline void wall_freep(struct wall **wall)
{
	wall_free(*wall);
}
/* Call when all stacks have arrived: adds a sum to the profile; sums of the time on CPUs are kept. 0 or -ENOMEM. */
MUST_CHECK int wall_sum(struct wall *wall, struct stack_builder *builder, const struct wait_entry *entry);
/* Call once, after all sums: adds the time on CPUs, shared out among the samples. 0 or -ENOMEM. */
MUST_CHECK int wall_finish(struct wall *wall, struct stack_builder *builder, const struct samples *samples);
