/* SPDX-License-Identifier: Apache-2.0 */
/* wall: makes samples of all of the threads' time: on a CPU, by the stacks that ticks found there, ready to run, and blocked, by the stacks
 * that they left the CPU with. Which of these it was stands at the root end of each stack. One thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "abi/wait.h"
#include "base/cleanup.h"
#include "model/profile.h"
#include "stacks/samples.h"
#include "stacks/stack_builder.h"
#include "stacks/wait_sums.h"

#define WALL_ON_CPU "[on-cpu]"
#define WALL_RUNNABLE "[runnable]"
#define WALL_BLOCKED "[blocked: %s]"      /* the kind of wait */
#define WALL_NO_SAMPLE "[not sampled]"    /* stands for the stack of a thread that was on a CPU, and that no tick met there */

struct wall;
/* Sets the profile's value type, which is borrowed for the wall's life. kernel_stacks: the report has them. NULL: no memory. */
struct wall *wall_new(bool kernel_stacks, struct profile *profile);
void wall_free(struct wall *wall); /* takes NULL */
static inline void wall_freep(struct wall **wall)
{
	wall_free(*wall);
}
/* After all stacks have come: adds a sum to the profile; those of the time on CPUs are kept. 0 or -ENOMEM. */
MUST_CHECK int wall_sum(struct wall *wall, struct stack_builder *builder, const struct wait_entry *entry);
/* After all sums: adds the time on CPUs, shared among the samples. Once. 0 or -ENOMEM. */
MUST_CHECK int wall_finish(struct wall *wall, struct stack_builder *builder, const struct samples *samples);
